"""Every repository ends: from each state of a run, doing what get_blocked_reason names completes it or gives it up."""

from __future__ import annotations

import hashlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.contract.conftest import Place
from tests.contract.protocol_world import Repository, no_serena

from holdfast.errors import HoldfastError
from holdfast.identity.project import Root, RootSource
from holdfast.protocol.checks.gates import Checks
from holdfast.protocol.errors import ProtocolInvalid
from holdfast.protocol.model import Check, CheckKind, Gate
from holdfast.protocol.runs import ActiveRun, EvidenceKind
from holdfast.protocol.service import Protocols
from holdfast.protocol.views import blocked_view, ended_view
from holdfast.store import Store

pytestmark = pytest.mark.anyio

SEEDS = range(24)
HOPELESS = (CheckKind.COMMAND, CheckKind.TOOL_CALLED)
"""Checks that an agent alone cannot meet: a command that nobody trusts, a tool that does not exist."""
FILES = {
    "README.md": "# Read me\n",
    "CLAUDE.md": "# Rules\n",
    ".agents/HANDOFF.md": "# Handoff\n\nOpen.\n",
    ".agents/governance/PROJECT-CONSTRAINTS.md": "# Constraints\n",
    ".claude/skills/github/scripts/list.sh": "echo\n",
    ".serena/memories/skill-usage-mandatory.md": "# Use them\n",
    "code.py": "x = 1\n",
}
START = ("Serena Initialization", "Skill Validation", "Context Retrieval", "Session Log", "Branch Verification", "Own")
END = ("Documentation Update", "Quality Checks", "QA Validation", "Git Operations", "Another of our own")
MARKS = ("(BLOCKING)", "(REQUIRED)", "(RECOMMENDED)", "")


@dataclass
class Agent:
    """Does what it is told, in a repository of its own."""

    protocols: Protocols
    repository: Repository
    root: Root

    async def active(self) -> ActiveRun:
        found = await self.protocols.active_run(str(self.repository.path))
        assert found is not None
        return found

    async def do(self, gate: Gate) -> None:
        """Do what a gate asks for, as its recovery steps say."""
        for check in gate.checks:
            await self._do(check, gate, await self.active())

    async def _do(self, check: Check, gate: Gate, active: ActiveRun) -> None:
        write, run = self.repository.write, active.run.id
        if check.kind is CheckKind.FILE_READ:
            self.repository.git("checkout", "HEAD", "--", *check.paths, check=False)
            for path in FILES:
                self.repository.git("checkout", active.run.starting_commit or "HEAD", "--", path, check=False)
                if (self.repository.path / path).exists():
                    digest = hashlib.sha256((self.repository.path / path).read_bytes()).hexdigest()
                    await self.protocols.record_seen(active, EvidenceKind.FILE_READ, path, digest)
        elif check.kind is CheckKind.FILE_EXISTS:
            write(f"{check.paths[0]}/made" if check.optional else check.paths[0], "made\n")
        elif check.kind is CheckKind.SESSION_LOG:
            name = check.paths[0].replace("YYYY-MM-DD-session-NN", run)
            write(name if run in name else f"{name}/{run}.md", "# Log\n\nBegun.\n")
        elif check.kind is CheckKind.NOT_ON_BRANCH:
            self.repository.git("switch", "--quiet", "--create", "work", check=False)
        elif check.kind is CheckKind.REPORT:
            write(".agents/qa/report.md", f"---\nsession: {run}\n---\n\nReviewed all of it.\n")
        elif check.kind is CheckKind.DOCS_CHANGED:
            for path in check.paths:
                write(path.replace("*", "made.md"), "# Changed\n\nIn this session.\n")
        elif check.kind is CheckKind.CLAIM:
            await self.protocols.record(self.root, gate.name, "note", "It was done in this session")
        elif check.kind is CheckKind.COMMITTED:
            self.repository.git("add", "--all")
            self.repository.git("commit", "--quiet", "--allow-empty", "--message", "work")

    async def finish(self) -> str:
        """Follow get_blocked_reason to the end; give up where it goes round in circles."""
        asked: list[str] = []
        for _ in range(60):
            reason = blocked_view(await self.protocols.blocked(self.root))
            assert reason["next"] and "abort: true" in reason["give_up"]
            for missing in reason.get("missing", []):
                assert missing["recovery"], "what is missing comes with how to get it"
                await self.do((await self.active()).gate(missing["gate"]))
            call, *rest = str(reason["next"]).split()
            asked.append(str(reason))
            if asked.count(asked[-1]) > 3:
                return str(ended_view(await self.protocols.end(self.root, "It cannot be met", abort=True))["status"])
            try:
                if call == "validate_gate":
                    await self.protocols.validate(self.root, rest[0])
                elif call == "advance_phase":
                    await self.protocols.advance(self.root, rest[-1])
                else:
                    assert call == "session_end"
                    return str(ended_view(await self.protocols.end(self.root, "All of it is done"))["status"])
            except HoldfastError as refusal:
                assert refusal.code.startswith("E_"), refusal
        raise AssertionError(f"the session does not end: {asked[-1]}")


def document(dice: random.Random) -> str:
    lines = []
    for part, titles in (("Start", START), ("End", END)):
        lines += [f"## Session {part} Protocol", ""]
        chosen = dice.sample(titles, dice.randint(1, len(titles)))
        for number, title in enumerate(chosen):
            own = title in ("Own", "Another of our own")
            mark = dice.choice(MARKS[1:] if own else MARKS)
            lines += [f"### Phase {number}: {title} {mark}".rstrip(), ""]
            if dice.random() < 0.5:
                lines += ["1. The agent MUST do what the title says", ""]
            if title == "Branch Verification":
                lines += ["1. The agent MUST NOT be on branch main", ""]
            if title == "Session Log" and dice.random() < 0.5:
                lines += ["1. The agent MUST write `logs/YYYY-MM-DD-session-NN.json`", ""]
    return "\n".join(lines)


def settings(dice: random.Random, protocol: str) -> str:
    lines = [f'protocol = "{protocol}"', f'enforcement = "{dice.choice(("off", "warn", "enforce"))}"']
    gates = {
        "GIT_COMMIT": ('file_exists = ["made.txt"]', "claim = true", "blocking = false"),
        "CONTEXT_RETRIEVAL": ('file_read = ["README.md"]', 'tool_called = ["Nobody"]', 'docs_changed = ["made.md"]'),
        "QUALITY_CHECKS": ('command = ["true"]', 'report = [".agents/qa/*.md"]'),
    }
    if protocol != "document":
        for gate, choices in gates.items():
            if dice.random() < 0.3:
                lines += [f"[gates.{gate}]", dice.choice(choices)]
    return "\n".join(lines) + "\n"


async def disturb(agent: Agent, dice: random.Random) -> None:
    """Bring a run into some state or other, as agents, people and crashes do."""
    repository, protocols, root = agent.repository, agent.protocols, agent.root
    for _ in range(dice.randint(0, 6)):
        act = dice.choice(("advance", "end", "all", "write", "commit", "remove", "break", "validate", "reset"))
        try:
            if act == "advance":
                await protocols.advance(root, None)
            elif act == "end":
                await protocols.end(root, "Too early")
            elif act == "all":
                await protocols.validate(root, "ALL")
            elif act == "validate":
                gates = (await agent.active()).protocol.gates
                await protocols.validate(root, dice.choice(gates).name)
        except HoldfastError as refusal:
            assert refusal.code.startswith("E_"), refusal
        if act == "write":
            repository.write(dice.choice(("code.py", "notes.md", "README.md")), f"{dice.random()}\n")
        elif act == "commit":
            repository.git("add", "--all")
            repository.git("commit", "--quiet", "--allow-empty", "--message", "in between")
        elif act == "remove":
            (repository.path / dice.choice(list(FILES))).unlink(missing_ok=True)
        elif act == "break":
            repository.write(".holdfast/protocol.toml", dice.choice(("protocol = ", "", 'enforcement = "off"\n')))
        elif act == "reset":
            repository.git("stash", "--include-untracked", check=False)


@pytest.fixture
async def store(sqlite_place: Place) -> AsyncIterator[Store]:
    opened = sqlite_place.open()
    try:
        yield opened
    finally:
        await opened.close()


@pytest.mark.parametrize("seed", SEEDS)
async def test_every_session_ends(store: Store, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    repository = Repository.new(tmp_path / "project")
    for path in dice.sample(list(FILES), dice.randint(1, len(FILES))):
        repository.write(path, FILES[path])
    protocol = dice.choice(("simple", "agents", "document"))
    repository.write(".holdfast/protocol.toml", settings(dice, protocol))
    repository.write("SESSION-PROTOCOL.md", document(dice))
    if dice.random() < 0.9:
        repository.commit("first.txt")
    root = Root(repository.path.resolve().as_uri(), None, RootSource.DIRECTORY)
    agent = Agent(Protocols(store, Checks(no_serena), tmp_path / "home"), repository, root)
    try:
        await agent.protocols.start(root, "Try it")
    except ProtocolInvalid:
        return  # no session began
    await disturb(agent, dice)
    if await agent.protocols.active_run(str(repository.path)) is None:
        return  # it was ended on the way
    gates = (await agent.active()).protocol.gates
    hopeless = any(check.kind in HOPELESS and (check.argv or check.names) for gate in gates for check in gate.checks)
    outcome = await agent.finish()
    assert outcome == "COMPLETE" or (outcome == "ABORTED" and hopeless), outcome
