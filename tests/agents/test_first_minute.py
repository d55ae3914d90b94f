"""Somebody installs the built wheel, finds work of Claude Code that was cut off before, and keeps it over upgrades."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agents.scripted_model import Request, ScriptedModel, steps, text, tool_use
from tests.agents.test_newcomer import Newcomer, signed_in
from tests.installation import kill_all, wait_until
from tests.wheels import PIPX, UV, build, copy_of_source, shared_caches

from holdfast.setup.launcher import read_launcher
from holdfast.version import __version__

NEXT = "999.0.1"
REQUEST = "Mend the fence, north side first."


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel of this version and one of the next, by version."""
    place = tmp_path_factory.mktemp("wheels")
    return {
        version: build(copy_of_source(place / version, version), place / f"built-{version}", "wheel")
        for version in (__version__, NEXT)
    }


class Stranger(Newcomer):
    """A user with uv, pipx, a python and Claude Code, and no clone."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        for program in (UV, PIPX):
            (self.bin / Path(program).name).symlink_to(program)
        self._caches = shared_caches() | {"UV_PYTHON": str(Path(sys.base_prefix) / "bin" / "python3")}
        self._caches |= {"PIPX_DEFAULT_PYTHON": self._caches["UV_PYTHON"]}

    def environment(self, **more: str) -> dict[str, str]:
        return super().environment(**self._caches, **more)

    def crash(self) -> None:
        """Claude Code is killed while it works."""
        plan = tool_use("Read", {"file_path": str(self.project / "plan.md")})
        status, _ = self.claude(steps(plan, self.kill_claude), REQUEST)
        assert status == -signal.SIGKILL

    def told(self, words: str = "Hello.") -> str:
        """What a new session of Claude Code is told by Holdfast before its first turn."""
        status, (first, *_) = self.claude(steps(text("Shall I go on?")), words)
        assert status == 0
        return first.text[first.text.find("[Holdfast briefing") :][:4_000] if "[Holdfast" in first.text else ""

    def continue_by(self, command: str) -> list[Request]:
        """Run the command that was named; what the model was asked."""
        with ScriptedModel(steps(text("The fence is mended."))) as model:
            self.run(f"{command} -p 'Go on.'", self.project, signed_in(model))
        return model.requests

    @property
    def launched(self) -> str:
        """The Python that agents start."""
        launcher = read_launcher(self.home / ".holdfast" / "launcher.sh")
        return "" if launcher is None else str(launcher.python)


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Stranger]:
    one = Stranger(tmp_path)
    try:
        yield one
    finally:
        kill_all(one.processes())
        shutil.rmtree(one.home, ignore_errors=True)


@pytest.mark.timeout(1200)
@pytest.mark.early
@pytest.mark.parametrize("install", ["uv tool install {}", "pipx install {}"], ids=["uv", "pipx"])
def test_work_that_was_cut_off_before_holdfast_was_installed_goes_on_after_four_commands(
    stranger: Stranger, wheels: dict[str, Path], install: str
) -> None:
    stranger.crash()
    stranger.run(install.format(wheels[__version__]), stranger.project)
    examined = stranger.run("holdfast setup claude --yes", stranger.project)
    assert "fault  " not in examined, examined
    listed = stranger.run("holdfast", stranger.project)
    assert REQUEST in listed, listed
    # At a terminal `holdfast resume` becomes this command; here the agent gets its one prompt with it.
    (named,) = stranger.run("holdfast resume --print", stranger.project).splitlines()
    said = json.dumps([request.body["messages"] for request in stranger.continue_by(named)])
    assert f'"content": "{REQUEST}"' in said or f'"text": "{REQUEST}"' in said, "the conversation itself goes on"
    assert f'"file_path": "{stranger.project / "plan.md"}"' in said, "with what it had done"


@pytest.mark.timeout(1200)
@pytest.mark.early
def test_hooks_brief_after_an_upgrade_at_another_path_and_after_a_move(
    stranger: Stranger, wheels: dict[str, Path]
) -> None:
    stranger.run(f"uv tool install {wheels[__version__]}", stranger.home)
    stranger.run("holdfast setup claude --yes", stranger.home)
    settings = stranger.home / ".claude" / "settings.json"
    as_set_up = settings.read_bytes()
    stranger.crash()
    assert "/uv/tools/" in stranger.launched

    stranger.run("uv tool uninstall holdfast", stranger.home)
    stranger.run(f"pipx install {wheels[NEXT]}", stranger.home)
    assert REQUEST in stranger.told()
    environment = stranger.home / ".local/share/pipx/venvs/holdfast"
    assert stranger.launched == str(environment / "bin" / "python"), "the new one repaired what agents start"
    wait_until(lambda: NEXT in stranger.run("holdfast status || true", stranger.home), "the relay has it upgraded too")

    moved = stranger.home / "tools" / "holdfast"
    moved.parent.mkdir()
    environment.rename(moved)
    command = stranger.home / ".local" / "bin" / "holdfast"
    command.unlink()
    command.symlink_to(moved / "bin" / "holdfast")  # whose first line names the Python of the old place
    assert REQUEST in stranger.told()
    assert stranger.launched == str(moved / "bin" / "python")
    assert settings.read_bytes() == as_set_up
