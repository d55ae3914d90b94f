"""The project that a command names."""

from __future__ import annotations

from typing import Any

from holdfast.errors import BadInput
from holdfast.files.in_time import in_time
from holdfast.identity.project import Root, RootSource, locate


async def root_argument(text: Any) -> Root:
    """Return the root at a path or URI; raises BadInput."""
    if not isinstance(text, str):
        raise BadInput("project", "must be a path or a URI")
    return await in_time(locate, text, RootSource.ARGUMENT)
