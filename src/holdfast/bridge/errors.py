"""What the bridge refuses."""

from __future__ import annotations

from holdfast.errors import NotFound


class UnknownTarget(NotFound):
    """There is no such target."""

    code = "E_UNKNOWN_TARGET"


class UnknownMessage(NotFound):
    """There is no such message."""

    code = "E_UNKNOWN_MESSAGE"
