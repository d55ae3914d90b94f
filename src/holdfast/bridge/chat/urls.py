"""Which addresses secrets and messages may be sent to."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from holdfast.errors import BadInput


def guarded(field: str, url: str) -> str:
    """Return `url` if nobody on the way can read what is sent there: https, or http on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port  # an impossible one raises here
    except ValueError as error:
        raise BadInput(field, "must be a URL", recovery="Example: https://example.org/holdfast.") from error
    if parts.scheme == "https" and host:
        return url
    if parts.scheme == "http" and _is_loopback(host):
        return url
    raise BadInput(
        field, "must be an https:// URL, or an http:// one on this machine", recovery="Correct it and start again."
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
