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
from holdfast.wire.mcp.transports import Link

ANSWER_SECONDS = 2.0
QUESTION = "roots"

logger = logging.getLogger(__name__)


def ask_early(ctx: ServerRequestContext[Any, Any], link: Link) -> None:
    """Ask a legacy client for its roots in the background, so that its first call does not wait for them."""
    if _has_roots(ctx):
        link.client_roots = None
        link.asking = asyncio.get_running_loop().create_task(_ask(ctx, link))
    else:
        link.client_roots = ()


async def gather(
    ctx: ServerRequestContext[Any, Any], era: Era, link: Link, answers: Mapping[str, Any] | None
) -> InputRequiredResult | None:
    """Set `link.client_roots`; in the modern era the reply may have to be the question instead."""
    if link.client_roots is not None:
        return None
    if not _has_roots(ctx):
        link.client_roots = ()
        return None
    if era is Era.MODERN:
        if answers is None or QUESTION not in answers:
            return InputRequiredResult(input_requests={QUESTION: ListRootsRequest()})
        link.client_roots = _read(answers[QUESTION])
        return None
    if link.asking is None:
        link.asking = asyncio.get_running_loop().create_task(_ask(ctx, link))
    # The task has its own timeout; shielded, because other calls wait for the same answer.
    await asyncio.shield(link.asking)
    return None


async def _ask(ctx: ServerRequestContext[Any, Any], link: Link) -> None:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            # An HTTP client opens its stream around its first call: a question sent earlier is lost.
            await link.reachable.wait()
            result = await ctx.session.send_request(ListRootsRequest(), ListRootsResult)
        link.client_roots = tuple(str(root.uri) for root in result.roots)
    except (MCPError, ValidationError, TimeoutError) as error:
        logger.info("the client did not tell its roots (%s); going on without them", type(error).__name__)
        link.client_roots = ()


def _has_roots(ctx: ServerRequestContext[Any, Any]) -> bool:
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and capabilities.roots is not None


def _read(answer: Any) -> tuple[str, ...]:
    try:
        result = answer if isinstance(answer, ListRootsResult) else ListRootsResult.model_validate(answer)
    except ValidationError:
        return ()
    return tuple(str(root.uri) for root in result.roots)
