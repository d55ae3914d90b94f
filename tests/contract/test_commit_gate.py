"""Before a run is ready, git itself refuses new commits; what comes through all the same is found and recorded."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.contract.commit_ways import EXCEPTIONS, HONEST, PRELUDE, REFUSED
from tests.contract.copies import copied
from tests.contract.protocol_world import no_serena
from tests.repository import ENVIRONMENT, Repository

import holdfast
from holdfast.agents.claude.hooks import HOOKS
from holdfast.git import gate
from holdfast.git.state import GitFault
from holdfast.identity.project import Root, RootSource, locate
from holdfast.protocol import queries
from holdfast.protocol.checks.gates import Checks
from holdfast.protocol.errors import GateUnmet
from holdfast.protocol.hooks.answers import ProtocolHooks
from holdfast.protocol.model import VIOLATION, Status
from holdfast.protocol.runs import RunRecord, RunStatus
from holdfast.protocol.service import Protocols
from holdfast.protocol.views import blocked_view
from holdfast.store import Store
from holdfast.store.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

ENFORCE = {".holdfast/protocol.toml": 'protocol = "simple"\nenforcement = "enforce"\n'}
MESSAGE = "Holdfast: read the map first."
OTHER_HOOK = '#!/bin/sh\n{ echo "$1"; cat; } >> "$(git rev-parse --git-common-dir)/theirs"\n'


def make(folder: Path) -> None:
    """Make what `commit_ways.py` describes."""
    project = Repository(
        folder / "project", {"README.md": "# A project\n", "a.txt": "a\n", "sub/b.txt": "b\n", **ENFORCE}
    )
    project.git("tag", "v1")
    project.git("tag", "released", project.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "released"))
    project.git("checkout", "-q", "-b", "side")
    project.write("side.txt", "side\n")
    project.commit("on the side")
    project.git("checkout", "-q", "main")
    project.git("clone", "-q", "--bare", ".", str(folder / "origin.git"))
    project.git("remote", "add", "origin", "../origin.git")
    project.write("main.txt", "main\n")
    project.commit("on main")
    project.git("push", "-q", "origin", "main")
    project.git("fetch", "-q")
    project.git("clone", "-q", "../origin.git", str(folder / "elsewhere"))
    project.git("-C", "../elsewhere", "commit", "-q", "--allow-empty", "-m", "ahead")
    project.git("-C", "../elsewhere", "push", "-q", "../origin.git", "HEAD:ahead")
    project.git("-C", "../elsewhere", "remote", "set-url", "origin", "../origin.git")
    project.git("-C", "../elsewhere", "commit", "-q", "--allow-empty", "-m", "elsewhere")
    project.write("a.txt", "changed\n")
    project.git("add", str(project.write("staged.txt", "staged\n")))
    for sample in folder.rglob("hooks/*.sample"):
        sample.unlink()


@dataclass
class Ground:
    """A folder with a repository, and its data directory."""

    folder: Path
    before: list[str] = field(init=False)

    def __post_init__(self) -> None:
        copied("commit gate", make, self.folder)
        self.home.mkdir()
        places = ("refs/heads", "refs/remotes", "refs/tags")
        self.before = self.git("for-each-ref", "--format=^%(objectname)", *places).split()

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def hook(self) -> Path:
        return self.project / ".git/hooks" / gate.HOOK

    def run(self, script: str, **env: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **ENVIRONMENT, "PYTHON": sys.executable, "HOME": str(self.folder), **env}
        return subprocess.run(
            ["bash", "-c", PRELUDE + script],
            cwd=self.project,
            env=env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )

    def git(self, *arguments: str) -> str:
        done = self.run(shlex.join(["git", *arguments]), GIT_GRAFT_FILE="/nowhere")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def close(self, message: str = MESSAGE, touched: float | None = None) -> None:
        assert gate.close(self.project, self.home, message, touched or time.time()) is None

    def is_refused(self) -> bool:
        return self.run("git commit --allow-empty -m 'Is it refused?'").returncode != 0

    def arrived(self) -> str:
        """A commit on HEAD or a branch that was on no branch before; empty if there is none."""
        head = self.run("git rev-parse --verify --quiet HEAD").stdout.split()
        return self.git("--no-replace-objects", "rev-list", "-1", "--branches", *head, *self.before)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path / "ground")


@dataclass
class Desk:
    """A run in a project that enforces its protocol, before its first gate."""

    ground: Ground
    store: Store
    protocols: Protocols = field(init=False)

    def __post_init__(self) -> None:
        self.protocols = self.another_daemon()

    def another_daemon(self) -> Protocols:
        return Protocols(self.store, Checks(no_serena), self.ground.home)

    def root(self, name: str = "project") -> Root:
        return Root((self.ground.folder / name).resolve().as_uri(), None, RootSource.DIRECTORY)

    async def record(self) -> RunRecord:
        """Touch the run, and say what is stored of it."""
        await self.protocols.active_run(str(self.ground.project))
        return (await self.protocols.records(self.root().uri))[0]

    async def meet_the_gate(self) -> None:
        """Read what is to be read, and have it validated."""
        digest = sha256((self.ground.project / "README.md").read_bytes()).hexdigest()
        await self.protocols.record(self.root(), "CONTEXT_RETRIEVAL", "content_hash", f"README.md {digest}")
        await self.protocols.validate(self.root(), "CONTEXT_RETRIEVAL")


@pytest.fixture
async def desk(ground: Ground) -> AsyncIterator[Desk]:
    store = SqliteStore.open(ground.home / "holdfast.db")
    try:
        desk = Desk(ground, store)
        await desk.protocols.start(desk.root(), "Mend the fence")
        yield desk
    finally:
        await store.close()


def test_there_are_enough_ways_and_none_is_listed_twice() -> None:
    every = [*REFUSED, *(way for ways in EXCEPTIONS.values() for way in ways), *HONEST]
    assert len(set(every)) == len(every)
    assert len(REFUSED) >= 100 and len(HONEST) >= 60


@pytest.mark.parametrize("way", REFUSED)
def test_no_way_puts_a_new_commit_on_a_branch_or_head(ground: Ground, way: str) -> None:
    ground.close()
    told = ground.run(way)
    assert not ground.arrived(), told
    assert MESSAGE in told.stderr + told.stdout or "filter-branch" in way  # which hides what git says


@pytest.mark.parametrize("way", REFUSED)
def test_each_of_these_ways_works_where_nothing_is_blocked(ground: Ground, way: str) -> None:
    told = ground.run(way)
    assert ground.arrived(), told


@pytest.mark.parametrize(("kind", "way"), [(kind, way) for kind, ways in EXCEPTIONS.items() for way in ways])
async def test_what_comes_through_is_recorded_at_the_next_touch(desk: Desk, kind: str, way: str) -> None:
    assert desk.ground.is_refused()
    told = desk.ground.run(way)
    after = desk.ground.git("rev-parse", "HEAD")[:10]
    record = await desk.record()
    assert record.violations, told
    assert record.run.phase == VIOLATION and record.run.held_by == "CONTEXT_RETRIEVAL"
    (requirement,) = {one.requirement for one in record.violations}
    assert "CONTEXT_RETRIEVAL" in requirement
    assert after in requirement or "refs/heads/" in requirement
    assert requirement.endswith("by git pull") == (kind == "a pull")
    again = await desk.record()
    assert again.violations == record.violations
    # The hook is back where it belongs.
    desk.ground.run("git config --unset core.hooksPath; git config --worktree --unset core.hooksPath")
    await desk.record()
    assert desk.ground.is_refused()


@pytest.mark.parametrize("command", HONEST)
def test_an_honest_command_works_while_a_run_is_blocked(ground: Ground, command: str) -> None:
    ground.close()
    told = ground.run(command)
    assert told.returncode == 0, told


BREAKS = {"its configuration": "echo '[' >> .git/config", "the whole of it": "mv .git ../away"}
MENDS = "[ -d .git ] || mv ../away .git; sed -i.bak '/^\\[$/d' .git/config"


@pytest.mark.parametrize("what", BREAKS)
async def test_a_repository_that_is_broken_for_a_moment_hides_no_commit(desk: Desk, what: str) -> None:
    desk.ground.run("git -c core.hooksPath=/x commit -m early")
    desk.ground.run(BREAKS[what])
    (unknown,) = (await desk.record()).violations
    assert "git cannot say" in unknown.requirement
    reason = blocked_view(await desk.protocols.blocked(desk.root()))
    assert "CONTEXT_RETRIEVAL" in reason["message"] and "abort: true" in reason["give_up"]
    desk.ground.run(MENDS)
    found = [one.requirement for one in (await desk.record()).violations]
    assert len(found) == 2 and "commit: early" in found[1]
    assert desk.ground.is_refused()


async def test_no_session_begins_where_git_cannot_be_asked(desk: Desk) -> None:
    await desk.protocols.end(desk.root(), "Another one shall begin", abort=True)
    desk.ground.run(BREAKS["its configuration"])
    with pytest.raises(GitFault):
        await desk.protocols.start(desk.root(), "Nothing could be verified")
    desk.ground.run(MENDS)
    await desk.protocols.start(desk.root(), "Mend the gate")


@pytest.mark.parametrize(
    ("way", "is_made_here"),
    [
        ("git commit -m x", True),
        ("GIT_COMMITTER_DATE=2001-01-01T00:00:00Z git commit -m x", True),
        ("git stash -q; git merge --no-edit --no-ff side", True),
        ("git stash -q; git rebase side", True),
        ("git pull -q --ff-only origin ahead", False),
        ("git stash -q; git checkout -q side; git checkout -q main", False),
        ("git reset -q --hard HEAD~1", False),
    ],
)
async def test_commits_without_a_session_are_found_however_they_were_made(
    desk: Desk, way: str, is_made_here: bool
) -> None:
    await desk.protocols.end(desk.root(), "Another one shall begin", abort=True)
    assert desk.ground.run(way).returncode == 0
    await desk.protocols.start(desk.root(), "Mend the gate")
    found = [one.requirement for one in (await desk.record()).violations]
    assert any("committed without a session" in one for one in found) == is_made_here


@pytest.mark.parametrize("name", ["a b ", "-x'\"$(y)\\\u00e9*[z]"])
@pytest.mark.parametrize("kind", ["plain", "unborn", "sha256", "of a bare repository", "with its git elsewhere"])
async def test_the_gate_holds_in_every_kind_of_repository_and_under_any_name(
    desk: Desk, tmp_path: Path, kind: str, name: str
) -> None:
    made = {
        "sha256": "git init -q --object-format=sha256 .",
        "with its git elsewhere": "git init -q --separate-git-dir ../its-git .",
        "of a bare repository": "git clone -q --bare ../ground/project ../b.git;"
        ' git -C ../b.git worktree add -q --force "$PWD" main',
    }.get(kind, "git init -q .")
    place = tmp_path / name
    place.mkdir()
    inside = f"cd {shlex.quote(str(place))} && "
    desk.ground.run(f"{inside}{made}; echo read > README.md")
    if kind != "unborn":
        desk.ground.run(f"{inside}git add -A; git commit -m first")
    (place / ".holdfast").mkdir(exist_ok=True)
    (place / ".holdfast/protocol.toml").write_text(ENFORCE[".holdfast/protocol.toml"])
    root = locate(str(place), RootSource.DIRECTORY)
    await desk.protocols.start(root, "Mend it here")
    told = desk.ground.run(f"{inside}git commit --allow-empty -m x")
    assert told.returncode != 0 and "too early" in told.stderr
    assert desk.ground.run(f"{inside}git -c core.hooksPath=/x commit --allow-empty -m x").returncode == 0
    await desk.protocols.active_run(str(place))
    assert (await desk.protocols.records(root.uri))[0].violations
    await desk.protocols.end(root, "It was only tried", abort=True)
    assert desk.ground.run(f"{inside}git commit --allow-empty -m x").returncode == 0


async def test_a_tag_that_was_there_on_no_branch_may_be_checked_out_and_is_no_violation(desk: Desk) -> None:
    assert desk.ground.run("git checkout -q -f released; git branch fixes released").returncode == 0
    assert desk.ground.git("rev-parse", "HEAD") == desk.ground.git("rev-parse", "released")
    assert not (await desk.record()).violations
    desk.ground.git("tag", "-d", "released")
    desk.ground.git("branch", "-D", "fixes")
    assert desk.ground.run("git checkout -q -f main; git gc -q --prune=now; git checkout -q side").returncode == 0
    assert desk.ground.is_refused()


# -- the hook in the repository ----------------------------------------------------------------------------------------


def test_a_hook_that_was_there_is_called_as_ever_and_put_back_byte_for_byte(ground: Ground) -> None:
    ground.hook.write_text(OTHER_HOOK)
    ground.hook.chmod(0o755)
    ground.close()
    ground.close("another message")
    assert ground.is_refused()
    assert ground.run("git branch later").returncode == 0
    told = (ground.project / ".git/theirs").read_text().splitlines()
    head = ground.git("rev-parse", "HEAD")
    assert told[-4:] == ["prepared", f"{'0' * 40} {head} refs/heads/later", "committed", told[-3]]
    assert gate.open_again(ground.project, ground.home)
    assert ground.hook.read_text() == OTHER_HOOK and os.access(ground.hook, os.X_OK)
    assert [path.name for path in ground.hook.parent.iterdir()] == [gate.HOOK]


def test_a_hook_that_refuses_still_refuses_behind_ours(ground: Ground) -> None:
    ground.hook.write_text("#!/bin/sh\n[ $1 != prepared ]\n")
    ground.hook.chmod(0o755)
    ground.close()
    assert ground.run("git branch later").returncode != 0


def test_a_hook_that_somebody_puts_over_ours_is_kept_and_called(ground: Ground) -> None:
    ground.close()
    ground.hook.write_text(OTHER_HOOK)
    assert not ground.is_refused()
    ground.close()
    assert ground.is_refused()
    assert gate.open_again(ground.project, ground.home)
    assert ground.hook.read_text() == OTHER_HOOK


def test_a_hook_that_is_a_link_stays_one(ground: Ground) -> None:
    tool = ground.project / ".git/hooks/tool"
    tool.write_text(OTHER_HOOK)
    tool.chmod(0o755)
    ground.hook.symlink_to("tool")
    ground.close()
    assert ground.is_refused()
    assert gate.open_again(ground.project, ground.home)
    assert os.readlink(ground.hook) == "tool"


def test_nothing_is_left_where_nothing_is_blocked(ground: Ground) -> None:
    before = sorted(path.name for path in (ground.project / ".git").rglob("*"))
    ground.close()
    assert gate.open_again(ground.project, ground.home)
    assert sorted(path.name for path in (ground.project / ".git").rglob("*")) == before
    assert not gate.open_again(ground.project, ground.home)


def test_one_worktree_is_blocked_and_another_is_not(ground: Ground) -> None:
    ground.git("worktree", "add", "-q", "-b", "later", "../w")
    worktree = ground.folder / "w"
    assert gate.close(worktree, ground.home, MESSAGE, time.time()) is None
    assert MESSAGE in ground.run("cd ../w && git commit --allow-empty -m x").stderr
    assert not ground.is_refused()
    ground.close()
    assert ground.is_refused()
    assert gate.open_again(worktree, ground.home)
    assert ground.is_refused()
    assert ground.run("cd ../w && git commit --allow-empty -m x").returncode == 0


def test_another_data_directory_does_not_open_a_gate_that_is_not_its_own(ground: Ground) -> None:
    ground.close()
    assert not gate.open_again(ground.project, ground.folder / "another")
    assert ground.is_refused()


@pytest.mark.parametrize("gone", ["home", "package", "worktree", "run"])
def test_what_a_holdfast_that_is_gone_left_behind_blocks_nobody_and_removes_itself(ground: Ground, gone: str) -> None:
    if gone == "worktree":
        ground.git("worktree", "add", "-q", "-b", "later", "../w")
        assert gate.close(ground.folder / "w", ground.home, MESSAGE, time.time()) is None
        ground.git("worktree", "remove", "../w")
    elif gone == "run":
        ground.close(touched=time.time() - 25 * 3600)
    else:
        ground.close()
    assert ground.hook.exists()
    if gone == "home":
        ground.home.rmdir()
    if gone == "package":
        file = ground.project / ".git" / gate.GATE
        file.write_text(file.read_text().replace(str(Path(holdfast.__file__ or "")), "/nowhere/holdfast/__init__.py"))
    told = ground.run("git commit --allow-empty -m x")
    assert told.returncode == 0
    assert ("Holdfast is gone" in told.stderr) == (gone in ("home", "package"))
    ground.git("branch", "later2")
    assert not ground.hook.exists() and not (ground.project / ".git" / gate.GATE).exists()


def test_a_copy_of_a_blocked_repository_is_not_blocked_and_the_original_is(ground: Ground) -> None:
    ground.close()
    assert ground.run("cp -R . ../copy && cd ../copy && git commit --allow-empty -m x").returncode == 0
    assert ground.is_refused()


@pytest.mark.parametrize("value", [".husky", "/somewhere/hooks", ""])
def test_where_hooks_are_kept_elsewhere_nothing_is_written_and_the_way_to_call_ours_is_told(
    ground: Ground, value: str
) -> None:
    ground.git("config", "core.hooksPath", value)
    before = sorted(path.name for path in ground.project.rglob("*"))
    why = gate.close(ground.project, ground.home, MESSAGE, time.time())
    assert why is not None and gate.CALL in why
    assert sorted(path.name for path in ground.project.rglob("*")) == before


def test_a_hook_of_the_project_that_calls_ours_refuses(ground: Ground) -> None:
    ground.git("config", "core.hooksPath", ".husky")
    theirs = ground.project / ".husky" / gate.HOOK
    theirs.parent.mkdir()
    theirs.write_text(f"#!/bin/sh\n{gate.CALL}\n")
    theirs.chmod(0o755)
    assert not ground.is_refused()
    ground.close()
    assert ground.is_refused()
    assert ground.run("git branch later").returncode == 0
    assert not ground.hook.exists()
    assert gate.open_again(ground.project, ground.home)
    assert not ground.is_refused()
    assert theirs.read_text() == f"#!/bin/sh\n{gate.CALL}\n"


def test_hooks_that_are_the_usual_ones_by_another_name_are_not_elsewhere(ground: Ground) -> None:
    ground.git("config", "core.hooksPath", ".git/hooks")
    ground.close()
    assert ground.is_refused()


def test_a_linked_folder_of_hooks_is_left_to_the_project(ground: Ground) -> None:
    (ground.project / "tools").mkdir()
    ground.hook.parent.rmdir()
    ground.hook.parent.symlink_to("../tools")
    assert gate.close(ground.project, ground.home, MESSAGE, time.time()) is not None
    assert not list((ground.project / "tools").iterdir())


@pytest.mark.parametrize("target", ["secrets", "fake"])
def test_a_directory_that_is_no_repository_is_not_written_to(ground: Ground, target: str) -> None:
    """A project that came as an archive may name any directory as its own."""
    named = ground.folder / target
    named.mkdir()
    if target == "fake":
        (named / "HEAD").write_text("ref: refs/heads/main\n")
        (named / "commondir").write_text(str(ground.home))
    stranger = ground.folder / "stranger"
    stranger.mkdir()
    (stranger / ".git").write_text(f"gitdir: {named}\n")
    before = sorted(ground.folder.rglob("*"))
    assert gate.close(stranger, ground.home, MESSAGE, time.time()) is not None
    assert sorted(ground.folder.rglob("*")) == before


@pytest.mark.parametrize("version", ["git version 2.27.4", "nonsense"])
def test_a_git_that_does_not_know_the_hook_is_named(
    ground: Ground, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = ground.folder / "bin" / "git"
    old.parent.mkdir()
    old.write_text(f"#!/bin/sh\necho '{version}'\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    why = gate.close(ground.project, ground.home, MESSAGE, time.time())
    assert why is not None and "2.28" in why
    assert not ground.hook.exists()


# -- the hook follows the run ------------------------------------------------------------------------------------------


async def test_the_gate_is_closed_from_the_start_says_what_is_missing_and_opens_when_it_is_met(desk: Desk) -> None:
    refused = desk.ground.run("git commit -m x")
    run = (await desk.record()).run
    for part in (run.id, "CONTEXT_RETRIEVAL", "Read what the project says of itself", "validate_gate"):
        assert part in refused.stderr
    await desk.meet_the_gate()
    assert not desk.ground.hook.exists()
    assert desk.ground.run("git commit -m x").returncode == 0
    assert (await desk.record()).violations == ()


async def test_what_a_project_says_cannot_steer_the_terminal_of_whoever_commits(ground: Ground) -> None:
    with (ground.project / ".holdfast/protocol.toml").open("a") as settings:
        settings.write('[gates.CONTEXT_RETRIEVAL]\nrecovery = ["clear\\u001b[2J\\nHoldfast: all is well"]\n')
    store = SqliteStore.open(ground.home / "holdfast.db")
    try:
        desk = Desk(ground, store)
        await desk.protocols.start(desk.root(), "Mend the fence")
        refused = ground.run("git commit -m x").stderr
    finally:
        await store.close()
    assert "clear" in refused and "\x1b" not in refused
    assert not any(line.startswith("Holdfast: all") for line in refused.splitlines())


async def test_a_gate_that_is_validated_in_vain_stays_closed(desk: Desk) -> None:
    await desk.protocols.validate(desk.root(), "ALL")
    with pytest.raises(GateUnmet):
        await desk.protocols.advance(desk.root(), None)
    with pytest.raises(GateUnmet):
        await desk.protocols.end(desk.root(), "Done.")
    assert desk.ground.is_refused()


@pytest.mark.parametrize("enforcement", ["warn", "off"])
async def test_git_is_left_alone_where_nothing_is_enforced(desk: Desk, enforcement: str) -> None:
    settings = desk.ground.project / ".holdfast/protocol.toml"
    settings.write_text(f'protocol = "simple"\nenforcement = "{enforcement}"\n')
    await desk.record()
    assert desk.ground.hook.exists(), "a session keeps the enforcement that it began with"
    await desk.protocols.end(desk.root(), "The owner enforces nothing any more.", abort=True)
    assert not desk.ground.hook.exists()
    await desk.protocols.start(desk.root(), "Mend the gate")
    assert not desk.ground.hook.exists()
    assert not desk.ground.is_refused()
    assert len((await desk.record()).violations) == (enforcement == "warn")


async def test_a_daemon_that_was_killed_leaves_the_gate_as_the_run_is(desk: Desk) -> None:
    assert desk.ground.is_refused()
    # Killed before the hook was written, or before it was removed: the next daemon settles it before it serves.
    gate.open_again(desk.ground.project)
    await desk.another_daemon().settle_gates()
    assert desk.ground.is_refused()
    run = (await desk.record()).run
    await desk.store.write(
        lambda tx: queries.record_gate(tx, run, "CONTEXT_RETRIEVAL", Status.PASS, "read", None),
    )
    assert desk.ground.hook.exists()
    await desk.another_daemon().settle_gates()
    assert not desk.ground.hook.exists()


async def test_the_end_of_a_run_that_nobody_touches_opens_its_gate(desk: Desk) -> None:
    await desk.store.write(
        lambda tx: tx.run("UPDATE protocol_runs SET touched_at = touched_at - :day", day=25 * 3_600_000)
    )
    await desk.another_daemon().sweep()
    await desk.another_daemon().settle_gates()
    assert (await desk.record()).run.status == RunStatus.ORPHANED
    assert not desk.ground.hook.exists()


async def test_a_commit_between_two_gates_is_recorded_once_and_at_the_end_of_the_run_at_the_latest(desk: Desk) -> None:
    desk.ground.run("git -c core.hooksPath=/x commit -m early")
    with pytest.raises(GateUnmet):
        await desk.protocols.end(desk.root(), "Done.")
    early = [one for one in (await desk.record()).violations if "before a commit" in one.requirement]
    assert len(early) == 1 and early[0].severity == "CRITICAL" and "commit: early" in early[0].requirement
    await desk.meet_the_gate()
    (recovered,) = [one for one in (await desk.record()).violations if "before a commit" in one.requirement]
    assert recovered.recovery is not None
    assert (await desk.record()).run.held_by is None


async def test_checking_out_what_was_there_is_no_violation(desk: Desk) -> None:
    for command in (
        "git stash",
        "git checkout side",
        "git checkout -b later",
        "git checkout --detach HEAD~1",
        "git checkout main",
        "git reset --hard HEAD~1",
        "git branch more side",
        "git branch $(printf 'a\\302\\205b\\342\\200\\250c')",
        "git fetch --all",
        "git worktree add -q -b theirs ../w && git -C ../w commit -q --allow-empty -m x",
    ):
        assert desk.ground.run(command).returncode == 0, command
        assert (await desk.record()).violations == (), command


async def test_an_agent_that_is_about_to_commit_hears_it_earlier_and_no_command_is_denied(desk: Desk) -> None:
    hooks = ProtocolHooks(desk.protocols)

    async def told(command: str) -> dict[str, Any] | None:
        payload = {"session_id": "s", "cwd": str(desk.ground.project), "tool_name": "Bash", "tool_use_id": "1"}
        event = HOOKS.event("PreToolUse", {**payload, "tool_input": {"command": command}})
        answer = await hooks.handle(event)
        return None if answer is None else HOOKS.answer("PreToolUse", answer)

    for command in ("git commit -m x", "git add -A && git commit -m x"):
        answer = await told(command)
        assert answer is not None
        output = answer["hookSpecificOutput"]
        assert "permissionDecision" not in output
        assert "CONTEXT_RETRIEVAL" in output["additionalContext"] and "Git will refuse" in output["additionalContext"]
    for command in ("git status", "echo git commit", "cd ../elsewhere && git commit -m x", "git log --grep commit"):
        assert await told(command) is None


async def test_a_worktree_whose_gate_is_off_is_named(desk: Desk) -> None:
    desk.ground.git("config", "core.hooksPath", ".husky")
    gate.open_again(desk.ground.project)
    await desk.record()
    ((worktree, why),) = desk.protocols.gates_off()
    assert worktree == str(desk.ground.project.resolve()) and ".husky" in why
    desk.ground.git("config", "--unset", "core.hooksPath")
    await desk.record()
    assert desk.protocols.gates_off() == [] and desk.ground.is_refused()
