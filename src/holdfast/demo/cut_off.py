"""The demo `cut-off`: an agent is killed in the middle of an edit, unknown to Holdfast, and another one continues."""

from __future__ import annotations

from holdfast.demo.played_agent import PlayedAgent
from holdfast.demo.screen import Screen
from holdfast.demo.stage import Stage
from holdfast.errors import HoldfastError

REQUEST = "Slow orders are booked twice. Send the order's id as a key, in charge.py and in refund.py, and test both."
CHECK = "python3 -m unittest"
COMMIT = 'git add -A && git commit -qm "Send a key with charges and refunds"'

CALL = 'bank.post("/{0}s", order["amount"])'
KEYED = 'bank.post("/{0}s", order["amount"], key=order["id"])'
FILES = {f"{name}.py": f"def {name}(bank, order):\n    return {CALL.format(name)}\n" for name in ("charge", "refund")}
TEST = '''\
import unittest

from charge import charge
from refund import refund


class SlowBank:
    """Books what it is sent, unless it knows the key."""

    def __init__(self):
        self.booked = {}

    def post(self, path, amount, key=None):
        self.booked.setdefault(key or len(self.booked), amount)


class SentTwice(unittest.TestCase):
    def test_one_charge(self):
        self.assertEqual(booked(charge), 1)

    def test_one_refund(self):
        self.assertEqual(booked(refund), 1)


def booked(send):
    bank, order = SlowBank(), {"id": "A17", "amount": 5}
    send(bank, order)
    send(bank, order)
    return len(bank.booked)
'''
TODOS = {"completed": "key in charge.py", "in_progress": "key in refund.py", "pending": "both tests pass"}
NEEDED = (REQUEST, "charge.py", "test_shop.py", TODOS["in_progress"], CHECK, "AssertionError")
"""What the second agent needs to know, and gets from the briefing alone."""
PLAYED = (
    "Played: the agents. A script of ours, without a model, works in their place and writes its transcript as"
    " Claude Code does."
)
REAL = "Real: the processes, the files, git, the tests, the kill, and every word that Holdfast says."


def play(stage: Stage, screen: Screen) -> None:
    """Run the whole demo on real processes and files; raises HoldfastError if anything does not come back."""
    screen.prose(PLAYED)
    screen.prose(REAL)
    _prepare(stage)

    screen.title("1. An agent works on files. Holdfast is not running, and is told nothing")
    first = stage.played()
    screen.line(f"agent: process {first.process.pid}", then=0.5)
    _work(first, screen)

    screen.title("2. It is killed in the middle of that edit")
    screen.line(f"kill -9 {first.process.pid}", then=0.7)
    first.kill()
    changed = [line.split()[-1] for line in stage.git("status", "--porcelain").splitlines()]
    screen.line(f"What is left: {' and '.join(changed)}, not committed; {CHECK} fails.", then=1.0)

    screen.title("3. Another agent starts in the same project. It knows nothing, and calls nothing")
    relay, session = stage.agent()
    second = stage.played(session)
    screen.line(f"agent: process {second.process.pid}; daemon: process {stage.daemon()}")
    told = stage.session_start(session)
    if not told:  # the owner switched the hook's briefing off
        told = str(relay.call("resume")["briefing"])
    screen.line("Holdfast finds the transcript on disk. The session-start hook tells the agent:", then=1.0)
    screen.quote(told)
    missing = [fact for fact in NEEDED if fact not in " ".join(told.split())]
    if missing:
        raise HoldfastError(f"The briefing does not say: {missing}.", recovery="Report this as a bug.")

    screen.title("4. It goes on where the other one was cut off")
    _finish(second, screen)
    second.close()
    relay.close()
    screen.say("")
    screen.line("Nobody explained the task twice, and nothing that was done was done again.")


def _prepare(stage: Stage) -> None:
    """Make the project: two files with the same mistake, committed."""
    for name, text in FILES.items():
        (stage.project / name).write_text(text, encoding="utf-8")
    stage.git("-c", "init.defaultBranch=main", "init", "-q")
    stage.git("add", "-A")
    stage.git("commit", "-qm", "Charge and refund")


def _work(agent: PlayedAgent, screen: Screen) -> None:
    agent.asked(REQUEST)
    screen.line(f"you: {REQUEST}", then=1.5)
    for name in FILES:
        agent.do(read=name)
    screen.line(f"reads {' and '.join(FILES)}", then=0.7)
    agent.todos(in_progress=TODOS["completed"], pending=TODOS["in_progress"])
    agent.do(edit="charge.py", old=CALL.format("charge"), new=KEYED.format("charge"))
    screen.line("edits charge.py: sends the key", then=0.7)
    agent.do(write="test_shop.py", text=TEST)
    screen.line("writes test_shop.py", then=0.7)
    agent.todos(**TODOS)
    _check(agent, screen, passes=False)
    agent.begin(edit="refund.py", old=CALL.format("refund"), new=KEYED.format("refund"))
    screen.line("edits refund.py ...", then=1.0)


def _finish(agent: PlayedAgent, screen: Screen) -> None:
    agent.asked("Continue.")
    screen.line("you: Continue.", then=1.0)
    agent.do(edit="refund.py", old=CALL.format("refund"), new=KEYED.format("refund"))
    screen.line("edits refund.py: sends the key", then=0.7)
    _check(agent, screen, passes=True)
    if agent.do(run=COMMIT)["failed"]:
        raise HoldfastError("The demo's commit failed.", recovery="Report this as a bug.")
    screen.line(f"runs {COMMIT}", then=0.7)
    agent.said("Both send the key now, and the tests pass.")


def _check(agent: PlayedAgent, screen: Screen, *, passes: bool) -> None:
    answer = agent.do(run=CHECK)
    if answer["failed"] is passes:
        raise HoldfastError(f"{CHECK} went otherwise than the demo needs.", recovery="Report this as a bug.")
    errors = [line for line in answer["text"].splitlines() if "Error" in line]
    screen.line(f"runs {CHECK}: {'OK' if passes else f'FAILED ({errors[-1]})'}", then=1.0)
