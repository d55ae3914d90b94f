"""Where there is a repository, git decides what a session changed, whatever it was changed by."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.contract.briefing_world import Agent, World, world
from tests.contract.conftest import Place
from tests.repository import Repository

FILES = {
    "a.txt": "a\n",
    "b.txt": "b\n",
    "old.txt": "old\n",
    "dirty.txt": "clean\n",
    "src/c.txt": "c\n",
    ".gitignore": ".env\n",
}


def play(place: Place, scenario: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with world(place) as one:
            await scenario(one)

    asyncio.run(run())


async def begun(one: World, agent: Agent | None = None, request: str = "Mend the fence.") -> Agent:
    """A session at work, of which git's state at its start is known."""
    agent = agent or one.agent()
    await agent.starts()
    await one.briefings.look_at_git(once=True)
    agent.asked(request)
    return agent


async def told_after(one: World, agent: Agent) -> tuple[str, str]:
    """How the next session is told of the files that were modified, and of those that were changed meanwhile."""
    agent.said("Done.")
    await agent.hook("SessionEnd", reason="other")
    await one.briefings.look_at_git(once=True)
    lines = (await one.agent().starts(wanted="full")).splitlines()
    return tuple(next((line for line in lines if line.startswith(head)), "") for head in HEADS)  # type: ignore[return-value]


HEADS = ("- Files modified", "- Changed meanwhile")


def test_git_decides_what_a_session_changed_whatever_changed_it(place: Place) -> None:
    async def scenario(one: World) -> None:
        repository = Repository(one.project, FILES)
        repository.write("dirty.txt", "changed before\n")
        agent = await begun(one)
        agent.used("Bash", command="make everything")  # names none of these
        repository.write("generated.txt", "x\n")
        repository.write("b.txt", "committed\n")
        repository.git("add", "b.txt")
        repository.git("commit", "-qm", "b")
        (one.project / "old.txt").unlink()
        agent.used("Edit", file_path=f"{one.project}/a.txt", old_string="a", new_string="b")
        agent.used("Bash", command="git checkout a.txt")  # as it was before
        agent.used("Write", file_path=f"{one.project}/probe.py", content="x")  # and removed by a program
        repository.write(".env", "X=1\n")
        agent.used("Edit", file_path=f"{one.project}/.env")
        agent.used("Edit", file_path="/etc/hosts")
        modified, meanwhile = await told_after(one, agent)
        assert modified == "- Files modified (5): /etc/hosts, .env, old.txt (removed), generated.txt, b.txt"
        assert meanwhile == ""

    play(place, scenario)


def test_what_another_session_changed_is_told_as_changed_meanwhile(place: Place) -> None:
    async def scenario(one: World) -> None:
        repository = Repository(one.project, FILES)
        agent = await begun(one)
        await begun(one, one.living(), "Paint it.")
        for name in ("a.txt", "b.txt", "src/c.txt", "theirs.txt", "out/new.txt"):
            repository.write(name, "x\n")
        agent.used("Edit", file_path=f"{one.project}/a.txt")
        agent.used("Bash", command="python mend.py --into b.txt && cp -r parts out")
        modified, meanwhile = await told_after(one, agent)
        assert modified == "- Files modified (3): a.txt, out/new.txt, b.txt"
        assert meanwhile == "- Changed meanwhile, by others or by hand (2): theirs.txt, src/c.txt"

    play(place, scenario)


@pytest.mark.parametrize("kind", ["linked worktree", "no commit", "subdirectory", "through a link"])
def test_git_decides_in_every_kind_of_checkout(place: Place, kind: str) -> None:
    async def scenario(one: World) -> None:
        top = one.project
        if kind == "linked worktree":
            one.project.rmdir()
            Repository(place.home / "main", FILES).worktree(one.project, "fence")
        elif kind == "no commit":
            subprocess.run(["git", "init", "-q", str(one.project)], check=True)
            (one.project / "before.txt").write_text("x\n")
        elif kind == "subdirectory":
            Repository(one.project, FILES)
            one.project = one.project / "src"
        else:
            Repository(place.home / "real", FILES)
            one.project.rmdir()
            one.project.symlink_to(place.home / "real")
        agent = await begun(one)
        agent.used("Bash", command="make")
        (top / "generated.txt").write_text("x\n")
        agent.used("Write", file_path=f"{top}/probe.py", content="x")
        modified, _ = await told_after(one, agent)
        assert modified.startswith("- Files modified (1): ") and modified.endswith("generated.txt")
        assert "before.txt" not in modified

    play(place, scenario)


def test_work_on_another_branch_is_told_and_what_was_fetched_is_not(place: Place) -> None:
    async def scenario(one: World) -> None:
        repository = Repository(one.project, FILES)
        repository.git("checkout", "-qb", "upstream")
        repository.write("fetched.txt", "x\n")
        repository.commit("theirs")
        repository.git("checkout", "-q", "main")
        agent = await begun(one)
        repository.git("merge", "-q", "--ff-only", "upstream")
        repository.git("checkout", "-qb", "fence", "main~1")
        repository.write("mended.txt", "x\n")
        repository.commit("mended")
        agent.used("Bash", command="git commit -qam mended")
        repository.git("checkout", "-q", "main")
        modified, _ = await told_after(one, agent)
        assert modified == "- Files modified (1): mended.txt"

    play(place, scenario)


def test_a_session_that_is_resumed_keeps_what_it_did_and_not_what_was_done_in_between(place: Place) -> None:
    async def scenario(one: World) -> None:
        repository = Repository(one.project, FILES)
        agent = await begun(one)
        agent.used("Bash", command="make")
        repository.write("first.txt", "x\n")
        agent.said("Done.")
        await agent.hook("SessionEnd", reason="other")
        await one.briefings.look_at_git(once=True)
        repository.write("between.txt", "x\n")
        await agent.starts("resume")
        await one.briefings.look_at_git(once=True)
        agent.asked("And the gate.")
        agent.used("Bash", command="make gate")
        repository.write("second.txt", "x\n")
        modified, _ = await told_after(one, agent)
        assert modified == "- Files modified (2): first.txt, second.txt"

    play(place, scenario)


def test_what_was_changed_before_git_was_looked_at_still_counts(place: Place) -> None:
    async def scenario(one: World) -> None:
        repository = Repository(one.project, FILES)
        agent = one.agent()
        await agent.starts()
        agent.asked("Be quick.")
        repository.write("quick.txt", "x\n")
        agent.used("Edit", file_path=f"{one.project}/a.txt")
        await one.briefings.look_at_git(once=True)
        agent.used("Bash", command="make")
        modified, _ = await told_after(one, agent)
        assert modified == "- Files modified (2): a.txt, quick.txt"

    play(place, scenario)


def test_a_repository_starts_no_program_by_being_looked_at(place: Place) -> None:
    async def scenario(one: World) -> None:
        repository = Repository(one.project, FILES)
        ran = place.home / "ran"
        program = repository.write("evil.sh", f"#!/bin/sh\ntouch {ran}\n")
        program.chmod(0o755)
        for name in (
            "gpg.program",
            "core.fsmonitor",
            "diff.external",
            "core.pager",
            "filter.x.clean",
            "filter.x.process",
        ):
            repository.git("config", name, str(program))
        repository.git("config", "log.showSignature", "true")
        (one.project / ".git" / "info").mkdir(exist_ok=True)
        (one.project / ".git" / "info" / "attributes").write_text("* filter=x diff=x\n")
        ran.unlink(missing_ok=True)
        agent = await begun(one)
        agent.used("Bash", command="git commit -S")
        signed = _signed_commit(repository)
        ran.unlink(missing_ok=True)
        modified, _ = await told_after(one, agent)
        assert not ran.exists() and signed
        assert "evil.sh" not in modified and "signed.txt" in modified

    play(place, scenario)


def _signed_commit(repository: Repository) -> str:
    """A commit whose signature git would show, made as any program can make one."""
    repository.write("signed.txt", "x\n")
    environment = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "false"}
    quiet = {**os.environ, **environment, "GIT_CONFIG_GLOBAL": os.devnull}

    def git(*arguments: str, text: str | None = None) -> str:
        done = subprocess.run(
            ["git", "-c", "filter.x.clean=", "-c", "filter.x.process=", *arguments],
            cwd=repository.path,
            env=quiet,
            input=text,
            text=True,
            capture_output=True,
            check=True,
        )
        return done.stdout.strip()

    git("add", "signed.txt")
    who = "A Tester <tester@example.org> 1790000000 +0000"
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    lines = [f"tree {git('write-tree')}", f"parent {repository.head()}", f"author {who}", f"committer {who}", signature]
    commit = git("hash-object", "-t", "commit", "-w", "--stdin", text="\n".join(lines) + "\n\nsigned\n")
    git("update-ref", "--create-reflog", "-m", "commit: signed", "HEAD", commit)
    return commit


def test_without_a_repository_the_commands_tell(place: Place) -> None:
    async def scenario(one: World) -> None:
        agent = await begun(one)
        agent.used("Bash", command="echo x > new.txt && mv a.txt b.txt && perl -pi -e 's/x/w/' c.txt")
        agent.used("Bash", command="sed -i '' 's/x/w/' f && rm d.txt")
        modified, _ = await told_after(one, agent)
        assert modified == "- Files modified (6): f, d.txt (removed), c.txt, b.txt, new.txt, a.txt (removed)"

    play(place, scenario)


def test_a_repository_that_git_cannot_read_leaves_it_to_the_commands(place: Place) -> None:
    async def scenario(one: World) -> None:
        Repository(one.project, FILES)
        agent = await begun(one)
        agent.used("Bash", command="rm old.txt")
        (one.project / ".git" / "HEAD").write_text("nonsense")
        modified, _ = await told_after(one, agent)
        assert modified == "- Files modified (1): old.txt (removed)"

    play(place, scenario)


def test_the_transcript_and_git_are_kept_beside_each_other(place: Place, tmp_path: Path) -> None:
    async def scenario(one: World) -> None:
        Repository(one.project, FILES)
        agent = await begun(one)
        agent.used("Bash", command="make")
        (one.project / "generated.txt").write_text("x\n")
        await agent.hook("PreCompact", trigger="auto")
        await one.briefings.look_at_git(once=True)
        text = agent.transcript.read_text()
        agent.transcript.write_text(text.replace("Mend the fence.", "Mend the gate."))  # read anew
        told = await agent.starts("compact")
        assert "Mend the gate." in told and "generated.txt" in told

    play(place, scenario)


def test_what_git_sees_of_a_paused_project_is_not_kept(place: Place) -> None:
    async def scenario(one: World) -> None:
        repository = Repository(one.project, FILES)
        agent = await begun(one)
        agent.used("Bash", command="make")
        await agent.hook("PreCompact", trigger="auto")
        repository.write("generated.txt", "x\n")
        await one.reasoning.pause(one.root)
        await one.briefings.look_at_git(once=True)
        await one.reasoning.unpause(one.root)
        assert "generated.txt" not in await one.agent().starts()

    play(place, scenario)


def test_a_session_that_is_cut_off_is_seen_by_git_while_it_works(place: Place) -> None:
    async def scenario(one: World) -> None:
        repository = Repository(one.project, FILES)
        agent = await begun(one)
        agent.used("Bash", command="make")
        repository.write("generated.txt", "x\n")
        await one.briefings.catch_up()
        await one.briefings.look_at_git(once=True)
        repository.write("by_hand_after_the_crash.txt", "x\n")
        await one.briefings.catch_up()  # nothing new was said
        await one.briefings.look_at_git(once=True)
        told = await one.agent().starts()
        assert "was cut off" in told and "Files modified (1): generated.txt" in told

    play(place, scenario)
