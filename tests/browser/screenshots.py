"""Pictures of every page in both themes, with the story as their data: `make screenshots`.

python -m tests.browser.screenshots                         into docs/pictures/dashboard, 1440 pixels wide
python -m tests.browser.screenshots FOLDER 1440 1024 390    elsewhere, whole pages at these widths
python -m tests.browser.screenshots --empty FOLDER 390      of a store that nobody has used
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path

from PIL import Image
from playwright.sync_api import FloatRect, sync_playwright
from tests.browser.chromium import FLAGS, MISSING, find
from tests.browser.conftest import sign_in_link
from tests.browser.story import told
from tests.dashboard_pages import find_pages
from tests.installation import Installation

from holdfast.dashboard.urls import conversation_url, project_url
from holdfast.identity.project import canonical_uri

FOLDER = Path(__file__).parents[2] / "docs" / "pictures" / "dashboard"
TALLEST = 1_800
"""Pixels of a page that are shown in the documentation."""
GONE = "/projects/nothing"
"""An address without a page."""
MOST_BYTES = 1_500_000
"""Of all pictures of the documentation together."""


def name_of(pattern: str) -> str:
    """The name of a page's picture: `/teams/{name}` is teams-name."""
    return re.sub(r"[^a-z]+", "-", pattern.lower()).strip("-") or "now"


@contextmanager
def _unused() -> Iterator[tuple[Installation, dict[str, str]]]:
    """A daemon whose store is empty."""
    with tempfile.TemporaryDirectory(prefix="holdfast-empty-", dir="/tmp") as folder:
        holdfast = Installation(Path(folder) / "holdfast")
        holdfast.serve()
        try:
            yield holdfast, {}
        finally:
            holdfast.close()


@contextmanager
def _storied() -> Iterator[tuple[Installation, dict[str, str]]]:
    with told() as story:
        kiosk, shop = (project_url(canonical_uri(str(story.project(name)))) for name in ("kiosk", "storefront"))
        yield (
            story.holdfast,
            {
                "/projects/{id}": shop,
                "/projects/{id}/sessions/{session}": f"{kiosk}/sessions/{story.killed}",
                "/teams/conversations/{id}": conversation_url(1),
            },
        )


def take(folder: Path, widths: Sequence[int], *, empty: bool = False, tallest: int | None = None) -> list[Path]:
    """Tell the story, and take a picture of each page in each theme at each width."""
    program = find()
    if program is None:
        sys.exit(MISSING)
    folder.mkdir(parents=True, exist_ok=True)
    taken = []
    with _unused() if empty else _storied() as (holdfast, chosen), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        for theme in ("light", "dark"):
            page = browser.new_context(color_scheme=theme, reduced_motion="reduce").new_page()
            page.goto(sign_in_link(holdfast))
            page.wait_for_url(f"{holdfast.address()}/")
            stranger = browser.new_context(color_scheme=theme, reduced_motion="reduce").new_page()
            found = find_pages(page, holdfast.address()) | chosen | {"/find": "/find?q=refund"}
            shown = [(page, name_of(pattern), path) for pattern, path in found.items()]
            for window, name, path in [
                *sorted(shown, key=itemgetter(1)),
                (stranger, "sign-in", "/"),
                (page, "error", GONE),
            ]:
                for width in widths:
                    window.set_viewport_size({"width": width, "height": 900})
                    window.goto(holdfast.address() + path)
                    height = window.evaluate("document.documentElement.scrollHeight")
                    height = min(height, tallest or height)
                    at = f"-{width}" if len(widths) > 1 else ""
                    file = folder / f"{name}-{theme}{at}.png"
                    clip: FloatRect = {"x": 0, "y": 0, "width": width, "height": height}
                    window.screenshot(path=file, clip=clip, full_page=True)
                    taken.append(_smaller(file))
        browser.close()
    return taken


def _smaller(file: Path) -> Path:
    """Keep 128 colours of a picture: a page has few."""
    with Image.open(file) as picture:
        small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    small.save(file, optimize=True)
    return file


def main(arguments: list[str]) -> int:
    """Take them; 1 if those of the documentation are too large."""
    empty = arguments[:1] == ["--empty"]
    folder, *widths = arguments[1:] if empty else arguments or [str(FOLDER)]
    wanted = [int(width) for width in widths] or [1_440]
    taken = take(Path(folder), wanted, empty=empty, tallest=None if arguments else TALLEST)
    size = sum(file.stat().st_size for file in taken)
    sys.stdout.write(f"{len(taken)} pictures in {folder}, {size:,} bytes\n")
    return int(not arguments and size > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
