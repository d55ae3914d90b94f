"""Why an archive is not taken over."""

from __future__ import annotations

from holdfast.errors import HoldfastError


class ArchiveRefused(HoldfastError):
    """A file is not a complete archive of `holdfast handoff`, or has forbidden content; nothing was written."""

    code = "E_ARCHIVE_REFUSED"
