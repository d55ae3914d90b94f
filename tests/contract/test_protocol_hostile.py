"""A hostile clone runs nothing and reads nothing outside itself."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contract.protocol_world import Repository, World, check, read_by_hook

from holdfast.git.state import Git
from holdfast.protocol.model import CheckKind, Status

pytestmark = pytest.mark.anyio

OWN_TEXT = "what only the user may read"


class Trap:
    """A clone that would leave a mark if anything of it were executed."""

    def __init__(self, folder: Path) -> None:
        self.marker = folder / "executed"
        files = ("README.md", "As it was.\n"), ("notes.md", "Before.\n")
        self.repository, self.start = Repository.begun(folder / "clone", *files)
        self._time = 1_000_000_000
        self.program = folder / "evil"
        self.program.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(self.marker))}\n")
        self.program.chmod(0o755)

    def set(self, name: str, value: str) -> None:
        self.repository.git("config", name, value)

    def edit(self) -> None:
        """Make git compare contents: the same length and another time, so that it cannot know without looking."""
        file = self.repository.write("notes.md", "Beyond.\n")
        os.utime(file, (1_000_000_000, 1_000_000_000))
        # A file with its old content and another time has git write its index anew.
        self._time += 1
        os.utime(self.repository.path / "README.md", (self._time, self._time))

    def sprung(self) -> bool:
        return self.marker.exists()

    async def look(self) -> None:
        """Everything that a run asks git."""
        git = Git(self.repository.path)
        state = await git.state()
        await git.exists(self.start)
        await git.exists("0123456789" * 4)
        await git.changed_since(self.start)
        await git.changed_since(None)
        await git.show(self.start, "notes.md")
        await git.fingerprint(self.start)
        if state.head:
            await git.is_ancestor(self.start, state.head)
            await git.committed_at(state.head)
        world = World(self.repository, self.start, skip_qa=True)
        kinds = (CheckKind.GIT_STATE, CheckKind.COMMITTED, CheckKind.DOCS_CHANGED, CheckKind.REPORT)
        await world.verify(*(check(kind, "notes.md") for kind in kinds))


def fsmonitor(trap: Trap) -> None:
    trap.set("core.fsmonitor", str(trap.program))


def clean_filter(trap: Trap) -> None:
    trap.set("filter.evil.clean", str(trap.program))
    trap.set("filter.evil.required", "true")
    trap.repository.write(".gitattributes", "*.md filter=evil\n")


def clean_filter_with_an_equals_sign(trap: Trap) -> None:
    trap.set("filter.a=b.clean", str(trap.program))
    trap.repository.write(".gitattributes", "*.md filter=a=b\n")


def clean_filter_in_the_attributes_of_the_repository(trap: Trap) -> None:
    trap.set("filter.evil.clean", str(trap.program))
    trap.repository.write(".git/info/attributes", "*.md filter=evil\n")


def long_running_filter(trap: Trap) -> None:
    trap.set("filter.evil.process", str(trap.program))
    trap.repository.write(".gitattributes", "*.md filter=evil\n")


def included_configuration(trap: Trap) -> None:
    trap.repository.write("settings", f'[filter "evil"]\n\tclean = {trap.program}\n')
    trap.repository.write(".gitattributes", "*.md filter=evil\n")
    trap.set("include.path", "../settings")


def included_for_this_branch(trap: Trap) -> None:
    trap.repository.write("settings", f'[filter "evil"]\n\tclean = {trap.program}\n')
    trap.repository.write(".gitattributes", "*.md filter=evil\n")
    trap.set("includeIf.onbranch:main.path", "../settings")


def configuration_of_the_worktree(trap: Trap) -> None:
    trap.set("extensions.worktreeConfig", "true")
    trap.repository.git("config", "--worktree", "filter.evil.clean", str(trap.program))
    trap.repository.write(".gitattributes", "*.md filter=evil\n")


def external_difference(trap: Trap) -> None:
    trap.set("diff.external", str(trap.program))


def difference_driver(trap: Trap) -> None:
    trap.set("diff.evil.command", str(trap.program))
    trap.repository.write(".gitattributes", "*.md diff=evil\n")


def text_conversion(trap: Trap) -> None:
    trap.set("diff.evil.textconv", str(trap.program))
    trap.repository.write(".gitattributes", "*.md diff=evil\n")


def hook_on_the_index(trap: Trap) -> None:
    shutil.copy(trap.program, trap.repository.path / ".git/hooks/post-index-change")


def hooks_in_the_clone(trap: Trap) -> None:
    trap.repository.write("hooks/post-index-change", "")
    shutil.copy(trap.program, trap.repository.path / "hooks/post-index-change")
    trap.set("core.hooksPath", "hooks")


def fetch_of_a_missing_object(trap: Trap) -> None:
    trap.set("core.repositoryFormatVersion", "1")
    trap.set("extensions.partialClone", "origin")
    trap.set("remote.origin.url", f"ext::{trap.program}")
    trap.set("remote.origin.promisor", "true")
    trap.set("protocol.allow", "always")
    trap.set("protocol.ext.allow", "always")


def fetch_over_ssh(trap: Trap) -> None:
    trap.set("core.repositoryFormatVersion", "1")
    trap.set("extensions.partialClone", "origin")
    trap.set("remote.origin.url", "ssh://localhost/repository")
    trap.set("remote.origin.promisor", "true")
    trap.set("protocol.ssh.allow", "always")
    trap.set("core.sshCommand", str(trap.program))


def submodule(trap: Trap) -> None:
    inner = Repository.new(trap.repository.path / "inner")
    inner.commit("inner.md")
    trap.repository.git("add", "inner")
    trap.repository.git("commit", "--quiet", "--message", "A repository in a repository")
    inner.git("config", "core.fsmonitor", str(trap.program))
    inner.write("inner.md", "More.\n")


SEEN_BY_STATUS: tuple[Callable[[Trap], None], ...] = (
    fsmonitor,
    clean_filter,
    clean_filter_with_an_equals_sign,
    clean_filter_in_the_attributes_of_the_repository,
    long_running_filter,
    included_configuration,
    included_for_this_branch,
    configuration_of_the_worktree,
    hook_on_the_index,
    hooks_in_the_clone,
    submodule,
)
SEEN_BY_DIFF = (external_difference, difference_driver, text_conversion)
SEEN_BY_MISSING_OBJECT = (fetch_of_a_missing_object, fetch_over_ssh)
TRAPS = [
    *((trap, ("status",)) for trap in SEEN_BY_STATUS),
    *((trap, ("diff",)) for trap in SEEN_BY_DIFF),
    *((trap, ("cat-file", "-e", "0123456789" * 4)) for trap in SEEN_BY_MISSING_OBJECT),
]


@pytest.mark.parametrize(("lay", "plain"), TRAPS, ids=[trap.__name__ for trap, _ in TRAPS])
async def test_what_a_repository_configures_is_not_executed(
    tmp_path: Path, lay: Callable[[Trap], None], plain: tuple[str, ...]
) -> None:
    trap = Trap(tmp_path)
    lay(trap)
    trap.edit()
    await trap.look()
    assert not trap.sprung()
    trap.edit()
    trap.repository.git(*plain, check=False)
    assert trap.sprung(), "plain git executes it, so it is a trap"


async def test_a_pager_and_aliases_of_a_repository_are_not_executed(tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    for name in ("status", "diff", "rev-parse", "cat-file", "config"):
        trap.set(f"alias.{name}", f"!{trap.program}")
        trap.set(f"pager.{name}", str(trap.program))
    trap.set("core.pager", str(trap.program))
    trap.set("core.editor", str(trap.program))
    trap.set("gpg.program", str(trap.program))
    trap.set("log.showSignature", "true")
    trap.edit()
    await trap.look()
    assert not trap.sprung()


@pytest.mark.parametrize("where", [".", "", "bin", "absolute"])
async def test_a_program_called_git_in_a_clone_is_not_executed(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = Trap(tmp_path)
    worktree = trap.repository.path
    (worktree / "bin").mkdir()
    for folder in (worktree, worktree / "bin"):
        shutil.copy(trap.program, folder / "git")
    first = str(worktree / "bin") if where == "absolute" else where
    monkeypatch.chdir(worktree)
    monkeypatch.setenv("PATH", f"{first}{os.pathsep}{os.environ['PATH']}")
    assert (await Git(worktree).state()).branch == "main"
    await trap.look()
    assert not trap.sprung()
    subprocess.run(["/bin/sh", "-c", "git status"], cwd=worktree, stdin=subprocess.DEVNULL, check=False)
    assert trap.sprung(), "a shell executes it, so it is a trap"


async def test_a_repository_of_another_user_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trap = Trap(tmp_path)
    fsmonitor(trap)
    real = shutil.which("git")
    assert real is not None
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git").write_text(
        f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 GIT_CONFIG_GLOBAL=/dev/null exec {shlex.quote(real)} "$@"\n'
    )
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    state = await Git(trap.repository.path).state()
    assert "belongs to another user" in state.problem
    assert state.branch is None
    assert not trap.sprung()


async def test_variables_of_the_surroundings_do_not_lead_git_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repository.new(tmp_path / "other")
    other.commit("other.txt")
    repository = Repository.new(tmp_path / "clone")
    head = repository.commit()
    trap = Trap(tmp_path / "trap")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git/index"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(trap.program))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(trap.program))
    state = await Git(repository.path).state()
    assert (state.head, state.dirty, state.problem) == (head, (), "")
    assert not trap.sprung()


async def test_another_worktree_in_the_configuration_is_not_looked_at(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret-name.txt").write_text(OWN_TEXT)
    repository = Repository.new(tmp_path / "clone")
    start = repository.commit()
    repository.git("config", "core.worktree", str(outside))
    git = Git(repository.path)
    assert (await git.state()).dirty == ()
    assert await git.changed_since(start) == []


async def test_the_repository_around_a_directory_is_not_its_own(tmp_path: Path) -> None:
    around = Repository.new(tmp_path / "around")
    around.commit("inner/README.md")
    (around.path / "inner/.git").mkdir()
    state = await Git(around.path / "inner").state()
    assert state.head is None
    assert "not a git repository" in state.problem


async def test_a_configuration_that_never_ends_is_given_up(tmp_path: Path) -> None:
    repository = Repository.new(tmp_path / "clone")
    repository.commit()
    (repository.path / ".git/config").unlink()
    os.mkfifo(repository.path / ".git/config")
    state = await Git(repository.path, timeout_s=0.5).state()
    assert "did not finish within 0.5 s" in state.problem


@pytest.fixture
def clone(tmp_path: Path) -> World:
    (tmp_path / "secret.md").write_text(f"---\nsession: 2026-01-02-session-03\n---\n{OWN_TEXT}\n")
    return World(*Repository.begun(tmp_path / "clone", ("src/code.py", "1\n")))


@pytest.mark.parametrize(
    "kind", [CheckKind.FILE_EXISTS, CheckKind.REPORT, CheckKind.SESSION_LOG, CheckKind.DOCS_CHANGED]
)
@pytest.mark.parametrize("way", ["link", "linked folder", "pipe", "device", "dots"])
async def test_nothing_outside_the_worktree_counts_as_a_file_of_it(
    clone: World, tmp_path: Path, kind: CheckKind, way: str
) -> None:
    folder = clone.repository.path / "papers"
    name = "2026-01-02-session-03.md"
    clone.repository.write("src/code.py", "2\n")
    if way == "linked folder":
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / name).write_text((tmp_path / "secret.md").read_text())
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir()
    match way:
        case "link":
            (folder / name).symlink_to(tmp_path / "secret.md")
        case "pipe":
            os.mkfifo(folder / name)
        case "device":
            (folder / name).symlink_to("/dev/zero")
    patterns = {CheckKind.SESSION_LOG: "papers", CheckKind.REPORT: "papers/*.md"}
    path = "../secret.md" if way == "dots" else patterns.get(kind, f"papers/{name}")
    verdict = await clone.verify(check(kind, path))
    assert verdict.status is Status.FAIL
    assert verdict.missing
    assert OWN_TEXT not in verdict.missing + verdict.evidence


async def test_an_agent_is_not_sent_to_read_a_file_outside(clone: World, tmp_path: Path) -> None:
    (clone.repository.path / "CLAUDE.md").symlink_to(tmp_path / "secret.md")
    verdict = await clone.verify(check(CheckKind.FILE_READ, "CLAUDE.md"))
    assert verdict.status is Status.SKIPPED
    assert "CLAUDE.md is outside the worktree" in verdict.evidence


async def test_a_file_read_under_one_name_is_read_under_the_name_that_links_to_it(clone: World) -> None:
    clone.repository.write("AGENTS.md")
    (clone.repository.path / "CLAUDE.md").symlink_to("AGENTS.md")
    asked = check(CheckKind.FILE_READ, "CLAUDE.md", "AGENTS.md")
    assert (await clone.verify(asked)).status is Status.FAIL
    assert (await clone.verify(asked, evidence=(read_by_hook("AGENTS.md"),))).status is Status.PASS


async def test_a_command_of_a_clone_is_not_run_before_it_is_trusted(tmp_path: Path) -> None:
    trap = Trap(tmp_path)
    command = check(CheckKind.COMMAND, argv=(str(trap.program),))
    verdict = await World(trap.repository, trap.start).verify(command)
    assert verdict.status is Status.FAIL
    assert "holdfast trust" in verdict.missing
    assert not trap.sprung()
    assert (await World(trap.repository, trap.start, trusted=True).verify(command)).status is Status.PASS
    assert trap.sprung()
