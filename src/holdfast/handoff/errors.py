"""Why an archive is not taken over."""

from __future__ import annotations

from holdfast.errors import HoldfastError


class ArchiveRefused(HoldfastError):
    """A file is no whole archive of `holdfast handoff`, or holds what no such archive may hold; nothing was written."""

    code = "E_ARCHIVE_REFUSED"
