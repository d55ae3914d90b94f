"""`thought` in the place of the sequential-thinking server: what agents send to that is taken here as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.process.clients import Session, Way
from tests.shared_daemon import Guest

pytestmark = pytest.mark.anyio

STDIO = Way("stdio", "legacy")


async def _kept(client: Session, number: int) -> dict[str, Any]:
    read = await client.call("session", operation="get", **{"from": str(number), "to": number})
    entry: dict[str, Any] = read["thoughts"][0]
    return entry


async def test_texts_for_numbers_and_flags_are_taken_for_what_they_mean(shared_embedded: Guest, project: Path) -> None:
    async with STDIO.connect(shared_embedded, cwd=str(project)) as client:
        sent: dict[str, Any] = {
            "thoughtNumber": "1",
            "totalThoughts": "5",
            "nextThoughtNeeded": "False",
            "isRevision": "false",
        }
        reply = await client.call("thought", thought="one", **sent)
        assert (reply["thoughtNumber"], reply["totalThoughts"], reply["nextThoughtNeeded"]) == (1, 5, False)
        sent = {"thoughtNumber": 2.0, "nextThoughtNeeded": "TRUE", "revisesThought": " 1 ", "needsMoreThoughts": "true"}
        await client.call("thought", thought="two", **sent)
        assert (await _kept(client, 2))["revisesThought"] == 1
        for bad in ("two", "1.5", "", "1e3"):
            text = await client.refused("thought", thought="no", nextThoughtNeeded=True, thoughtNumber=bad)
            assert text.startswith("E_BAD_INPUT: thoughtNumber"), bad
        for unclear in ("yes", "", 1):
            text = await client.refused("thought", thought="no", nextThoughtNeeded=unclear)
            assert text.startswith("E_BAD_INPUT: nextThoughtNeeded"), unclear


async def test_a_revision_of_nothing_and_a_branch_without_a_name_are_recorded(
    shared_embedded: Guest, project: Path
) -> None:
    async with STDIO.connect(shared_embedded, cwd=str(project)) as client:
        await client.think("one")
        await client.think("I was wrong before", isRevision=True)
        assert (await _kept(client, 2))["isRevision"] is True
        await client.think("another way from the first", branchFromThought=1)
        kept = await _kept(client, 3)
        assert (kept["branchFromThought"], "branchId" in kept) == (1, False)
        assert (await client.init("load_context"))["branches"] == []
        shown = (await client.call("session", operation="export"))["text"]
        assert "## Thought 2, revises earlier thinking" in shown
        assert "## Thought 3, from 1" in shown


async def test_every_parameter_is_described(shared_embedded: Guest, project: Path) -> None:
    async with STDIO.connect(shared_embedded, cwd=str(project)) as client:
        listed = {tool.name: tool for tool in (await client.client.list_tools()).tools}
        bare = {
            f"{tool.name}.{name}"
            for tool in listed.values()
            for name, schema in tool.input_schema["properties"].items()
            if not schema.get("description")
        }
        assert bare == set()
        properties = listed["thought"].input_schema["properties"]
        assert properties["thoughtNumber"]["type"] == "integer"
        assert properties["nextThoughtNeeded"]["type"] == "boolean"
