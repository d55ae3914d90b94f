"""Texts that try to be more than text, in every place where somebody else's text comes in."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.agents.echo import offered
from tests.installation import Installation
from tests.process.agent import Agent
from tests.process.histories import History

SCRIPT = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
TEXTS = {
    "markup": f'{SCRIPT}"><svg onload=window.hacked=1>{{{{ 7 * 7 }}}}{{% raw %}}',
    "word": "w" * 1_000_000,
    "direction": "\u202egnp.exe \u2066hidden\u2069 \u05d0\u05d1\u05d2",
    "terminal": "\x1b[2J\x1b]0;title\x07 red",
    "nul": "before\0after",
    "surrogate": "half \ud83d of it",
}
SENDABLE = ("markup", "direction", "terminal")
"""Those that a command line and a tool take."""
NAME = "<img src=x onerror=window.hacked=1>"
"""What a client and a browser may call themselves; names of teams and keys are letters and digits."""
THREAD = "{{ 7 * 7 }}' onload=window.hacked=1 &lt;b&gt;"
"""What a thread may be called at worst."""


def told_with_hostile_texts(holdfast: Installation, place: Path) -> None:
    """Start a daemon, and let agents, messages, thoughts, teams and names be full of such texts."""
    project = place / "<b onclick=x>name&amp;" / "<img src=x onerror=alert(1)>"
    project.parent.mkdir(parents=True)
    holdfast.home.mkdir(mode=0o700)
    history = History(holdfast, place / "history")
    history.repository(project)
    teams = {
        "target": {"project": str(project), "delivery": "hook", "description": TEXTS["markup"]},
        "echo": {"project": str(project), "agent": "echo", "description": TEXTS["direction"]},
    }
    (holdfast.home / "teams.json").write_text(json.dumps({"teams": teams}))
    holdfast.settings |= offered()
    holdfast.serve()
    for name, text in TEXTS.items():
        folder = place / name
        folder.mkdir()
        session = history.session(name, folder)
        session.ask(text)
        session.say(text, stop_reason=None)
        session.call("Bash", {"command": text})
        session.hook("PreCompact", trigger="auto")
        _survived(history, place / f"{name} went on", text)
    with Agent(holdfast, project, session="one", client=(NAME, TEXTS["markup"])) as agent:
        agent.call("session_start", objective="".join(TEXTS[name] for name in SENDABLE))
        for name in SENDABLE:
            thought = {"nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 5}
            agent.call("thought", thought=TEXTS[name], **thought)
            agent.call("save_task", current_task=TEXTS[name])
            assert holdfast.run("send", "target", "--id", name, TEXTS[name]).returncode == 0
            for _ in range(5):
                agent.call("take_message")
                agent.call("finish_message", id=name, outcome="later")
        agent.call("thought", thought="w" * 50_000, nextThoughtNeeded=True, thoughtNumber=4, totalThoughts=5)
    for name in SENDABLE:
        holdfast.run("teams", "ask", "echo", TEXTS[name], "--timeout", "5")
    assert holdfast.run("teams", "ask", "echo", "In a thread", "--thread", THREAD).returncode == 0
    assert holdfast.run("key", "create", NAME).returncode == 1
    assert holdfast.run("teams", "add", NAME, "--project", str(project)).returncode != 0


def _survived(history: History, folder: Path, text: str) -> None:
    """A session is killed, resumed, compacted, and now at work."""
    folder.mkdir()
    session = history.session(folder.name, folder)
    session.ask(text)
    session.call("Bash", {"command": text})
    for source in ("resume", "compact"):
        session.start(source, pid=os.getpid())
        session.ask(text)
        session.say(text, stop_reason=None)
        session.run("Read", {"file_path": f"{folder}/{text}"})
        session.run("TodoWrite", {"todos": [{"content": text, "status": "in_progress"}]})
        session.call("Edit", {"file_path": f"{folder}/{text}"})
