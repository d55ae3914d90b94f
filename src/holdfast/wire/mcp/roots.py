"""Asks a client for its roots, in both eras, without delaying a call for long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import InputRequiredResult, ListRootsRequest, ListRootsResult
from pydantic import ValidationError

from holdfast.identity.caller import Era
from holdfast.wire.mcp.transports import OpenTransport

ANSWER_SECONDS = 2.0
QUESTION = "roots"

logger = logging.getLogger(__name__)


def ask_early(ctx: ServerRequestContext[Any, Any], transport: OpenTransport) -> None:
    """Ask a legacy client for its roots in the background, so that its first call does not wait for them."""
    if _has_roots(ctx):
        transport.client_roots = None
        transport.asking = asyncio.get_running_loop().create_task(_ask(ctx, transport))
    else:
        transport.client_roots = ()


async def gather(
    ctx: ServerRequestContext[Any, Any], era: Era, transport: OpenTransport, answers: Mapping[str, Any] | None
) -> InputRequiredResult | None:
    """Set `transport.client_roots`; in the modern era the reply may have to be the question instead."""
    if transport.client_roots is not None:
        return None
    if not _has_roots(ctx):
        transport.client_roots = ()
        return None
    if era is Era.MODERN:
        if answers is None or QUESTION not in answers:
            return InputRequiredResult(input_requests={QUESTION: ListRootsRequest()})
        transport.client_roots = _read(answers[QUESTION])
        return None
    if transport.asking is None:
        transport.asking = asyncio.get_running_loop().create_task(_ask(ctx, transport))
    # The task has its own timeout; shielded, because other calls wait for the same answer.
    await asyncio.shield(transport.asking)
    return None


async def _ask(ctx: ServerRequestContext[Any, Any], transport: OpenTransport) -> None:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            # An HTTP client opens its stream around its first call: a question sent earlier is lost.
            await transport.reachable.wait()
            result = await ctx.session.send_request(ListRootsRequest(), ListRootsResult)
        transport.client_roots = tuple(str(root.uri) for root in result.roots)
    except (MCPError, ValidationError, TimeoutError) as error:
        logger.info("the client did not tell its roots (%s); going on without them", type(error).__name__)
        transport.client_roots = ()


def _has_roots(ctx: ServerRequestContext[Any, Any]) -> bool:
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and capabilities.roots is not None


def _read(answer: Any) -> tuple[str, ...]:
    try:
        result = answer if isinstance(answer, ListRootsResult) else ListRootsResult.model_validate(answer)
    except ValidationError:
        return ()
    return tuple(str(root.uri) for root in result.roots)
