"""Pictures of every page in both themes, with the story as their data: `make screenshots`.

python -m tests.browser.screenshots              into docs/pictures/dashboard, 1440 pixels wide
python -m tests.browser.screenshots FOLDER 390   elsewhere, at another width
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright
from tests.browser.chromium import FLAGS, MISSING, find
from tests.browser.conftest import sign_in_link
from tests.browser.story import told
from tests.dashboard_pages import find_pages

FOLDER = Path(__file__).parents[2] / "docs" / "pictures" / "dashboard"
TALLEST = 1_400
"""Pixels of a page that are shown."""
MOST_BYTES = 1_500_000
"""Of all pictures of the documentation together."""


def name_of(pattern: str) -> str:
    """The name of a page's picture: `/teams/{name}` is teams-name."""
    return re.sub(r"[^a-z]+", "-", pattern.lower()).strip("-") or "now"


def take(folder: Path, width: int) -> list[Path]:
    """Tell the story, and take a picture of each page in each theme."""
    program = find()
    if program is None:
        sys.exit(MISSING)
    folder.mkdir(parents=True, exist_ok=True)
    taken = []
    with told() as story, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        for theme in ("light", "dark"):
            context = browser.new_context(
                color_scheme=theme, viewport={"width": width, "height": 900}, reduced_motion="reduce"
            )
            page = context.new_page()
            page.goto(sign_in_link(story.holdfast))
            page.wait_for_url(f"{story.holdfast.address()}/")
            for pattern, path in sorted(find_pages(page, story.holdfast.address()).items()):
                page.goto(story.holdfast.address() + path)
                height = min(TALLEST, page.evaluate("document.documentElement.scrollHeight"))
                file = folder / f"{name_of(pattern)}-{theme}.png"
                page.screenshot(path=file, clip={"x": 0, "y": 0, "width": width, "height": height}, full_page=True)
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
    folder = Path(arguments[0]) if arguments else FOLDER
    taken = take(folder, int(arguments[1]) if len(arguments) > 1 else 1_440)
    size = sum(file.stat().st_size for file in taken)
    sys.stdout.write(f"{len(taken)} pictures in {folder}, {size:,} bytes\n")
    return int(not arguments and size > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
