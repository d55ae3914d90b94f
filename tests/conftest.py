"""What all tests share."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A slow machine is no failure, and a failure must come again.
settings.register_profile("holdfast", deadline=None, derandomize=True)
settings.load_profile("holdfast")


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, as the daemon does."""
    return "asyncio"
