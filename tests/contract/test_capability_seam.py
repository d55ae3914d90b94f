"""A new capability is one folder and one line: everything else iterates over the list in app.py.

The line is put into a copy of Holdfast, because the list is code. So this test alone in this folder starts a daemon.
"""

from __future__ import annotations

import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.contract import sample_capability
from tests.contract.conftest import Place
from tests.contract.sample_capability import capability as sample
from tests.installation import Installation, wait_until
from tests.process.agent import Agent
from tests.process.hooks import starts

import holdfast
from holdfast.app import App, build
from holdfast.cli.control import ask_daemon
from holdfast.config import read_settings

LAST = "        records_capability(store, settings, owns_home),\n"
LINE = '        __import__("holdfast.greetings.capability", fromlist=["capability"]).capability(),\n'
HIDDEN = shutil.ignore_patterns("__pycache__")


@pytest.fixture
def extended(tmp_path: Path) -> Iterator[Installation]:
    """A daemon of a Holdfast with one folder and one line more."""
    source = tmp_path / "src"
    shutil.copytree(Path(str(holdfast.__file__)).parent, source / "holdfast")
    shutil.copytree(Path(str(sample_capability.__file__)).parent, source / "holdfast" / "greetings", ignore=HIDDEN)
    app = source / "holdfast" / "app.py"
    text = app.read_text()
    assert text.count(LAST) == 1, "the list of capabilities has moved"
    app.write_text(text.replace(LAST, LAST + LINE))
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    installation = Installation(home)
    installation.settings["PYTHONPATH"] = str(source)
    installation.daemon_command = [sys.executable, "-P", "-m", "holdfast", "serve"]
    try:
        installation.serve()
        yield installation
    finally:
        installation.close()


def test_a_new_capability_is_one_folder_and_one_line(extended: Installation, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()

    def over_rest() -> dict[str, object]:
        headers = {"Authorization": f"Bearer {extended.key()}"}
        found: dict[str, object] = httpx.get(f"{extended.address()}/api/greetings", headers=headers, timeout=60).json()
        return found

    hook = starts(extended, project, tmp_path / f"{uuid.uuid4()}.jsonl")
    assert "Greet whoever comes." in hook["context"]

    with Agent(extended, project) as agent:
        assert agent.call("greet", name="Ada")["greeting"] == "Good morning, Ada."

    settings = read_settings({}, home=str(extended.home))
    assert ask_daemon(settings, "greet", {"name": "Grace"}) == {"greeting": "Good morning, Grace."}
    assert over_rest()["names"] == ["Ada", "Grace"]

    status = ask_daemon(settings, "status")
    assert [loop["running"] for loop in status["loops"] if loop["name"] == "greetings"] == [True]
    wait_until(lambda: int(str(over_rest()["rounds"])) > 1, "the loop came round")

    assert "2 greetings are waiting for an answer." in extended.run("doctor").stdout

    told = ask_daemon(settings, "resume", {"project": str(project)})
    assert "Greeted here: Ada, Grace." in told["text"]
    hook = starts(extended, project, tmp_path / f"{uuid.uuid4()}.jsonl")
    assert "Greeted here: Ada, Grace." in hook["context"] and "Greet whoever comes." in hook["context"]

    with Agent(extended, project) as agent:
        assert "greet" in {tool["name"] for tool in agent.request("tools/list", {})["tools"]}


@pytest.mark.anyio
async def test_a_capability_that_answers_hooks_cannot_be_among_those_made_later(sqlite_place: Place) -> None:
    """Its hooks would be missing in silence."""
    store = sqlite_place.open()
    try:
        app = build(store, read_settings({}, home=str(sqlite_place.home)), "this-machine")
        late = App(store, app.settings, app.transports, app.connections, app.keys, (), lambda: [sample.capability()])
        with pytest.raises(TypeError, match="greetings answers hooks"):
            late.prepare()
    finally:
        await store.close()
