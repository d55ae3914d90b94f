"""Style, script and icon: served from memory, under a name that changes with their content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).parent / "static"
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".ts": "text/plain"}
YEAR_SECONDS = 31_536_000


class StaticFiles:
    """The files of the dashboard, the same for everybody, so that they need no sign-in."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in KINDS}
        together = hashlib.sha256(b"\0".join(name.encode() + b"\0" + text for name, text in self._files.items()))
        self.version = together.hexdigest()[:16]

    def url(self, name: str) -> str:
        """Return the address of a file, which a browser may keep for good."""
        if name not in self._files:
            raise LookupError(name)
        return f"/static/{self.version}/{name}"

    def response(self, request: Request) -> Response:
        """Answer a request for a file: cacheable forever under its version, otherwise with an ETag."""
        version, _, name = request.url.path.removeprefix("/static/").rpartition("/")
        content = self._files.get(name)
        if content is None or version not in ("", self.version):
            return Response("There is no such file.", 404, media_type="text/plain")
        tag = f'"{self.version}"'
        lasting = f"public, max-age={YEAR_SECONDS}, immutable" if version else "no-cache"
        # Any page of a user's own may import the client module, wherever it is served.
        headers = {"Cache-Control": lasting, "ETag": tag, "Access-Control-Allow-Origin": "*"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=KINDS[f".{name.rpartition('.')[2]}"])


def icon(number: int) -> bytes:
    """Draw the icon with the number of what waits for a person."""
    plain = (FOLDER / "icon.svg").read_text(encoding="utf-8")
    if number < 1:
        return plain.encode()
    shown = str(number) if number < 10 else "9+"
    badge = (
        '<circle cx="46" cy="18" r="17" fill="#d9480f"/>'
        '<text x="46" y="27" text-anchor="middle" font-family="sans-serif" font-size="25" font-weight="700"'
        f' fill="#fff">{shown}</text></svg>'
    )
    return plain.replace("</svg>", badge).encode()
