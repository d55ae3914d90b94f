"""What the bridge refuses."""

from __future__ import annotations

from holdfast.errors import Conflict, NotFound


class UnknownTarget(NotFound):
    """There is no such target."""

    code = "E_UNKNOWN_TARGET"


class UnknownMessage(NotFound):
    """There is no such message."""

    code = "E_UNKNOWN_MESSAGE"


class NotYours(Conflict):
    """The message is not (or no longer) with whoever wants to end it."""

    code = "E_NOT_YOURS"
