"""The daemon without the tracking of connections and calls: what the tracking is compared with."""

from __future__ import annotations

import sys
from typing import Any

from holdfast.cli import main
from holdfast.connections.usage import Usage
from holdfast.wire.mcp.recognition import Recognition


async def _meet(self: Recognition, ctx: Any, tool: Any, recognised: Any) -> Any:
    return recognised


async def _by_transport(self: Recognition, transport: Any, identity: str | None) -> None:
    return None


def _count(self: Usage, connection_id: str | None, tool: str, seconds: float, outcome: str) -> None:
    return None


if __name__ == "__main__":
    Recognition.meet = _meet  # type: ignore[method-assign]
    Recognition._by_transport = _by_transport  # type: ignore[method-assign]
    Usage.count = _count  # type: ignore[method-assign]
    sys.exit(main(sys.argv[1:]))
