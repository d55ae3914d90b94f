"""What survived a break: counted, drawn and told in words. Pure."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.transcripts import Transcript, folded

from holdfast.agents.claude.transcripts.neutral import entry_of
from holdfast.agents.transcript_entries import Compacted
from holdfast.briefing.knowledge import Knowledge, KnownFile, counts_of, knowledge_of
from holdfast.briefing.ledger.actions import actions_in
from holdfast.briefing.ledger.model import Action, Ledger
from holdfast.briefing.ledger.wording import items, paths_in
from holdfast.briefing.model import Occasion, joined
from holdfast.briefing.project_sessions import Continued
from holdfast.briefing.queries.breaks import Break
from holdfast.dashboard.survival import survival, waiting
from holdfast.dashboard.survival_picture import NARROW, WIDE, Frame, draw

PROJECT = Path("/home/me/project")
MINUTE = 60_000


def told_of(ledger: Ledger) -> str:
    return joined("[Frame]", items(ledger, PROJECT, Occasion.COMPACT))


def worked(files: int = 3) -> Transcript:
    """A session that read and changed files, and met an error."""
    transcript = Transcript(PROJECT)
    transcript.ask("Find the leak.")
    for number in range(files):
        transcript.read(f"{PROJECT}/a/long/way/down/to/this/source/file_{number:03}.py")
    transcript.fail("pytest tests/leak.py", "Exit code 1\nMemoryError: 412 frames")
    transcript.edit(f"{PROJECT}/leak.py")
    transcript.ask("Then mend it.")
    return transcript


# -- tokens -----------------------------------------------------------------------------------------------------------


def test_tokens_of_the_context_are_what_the_agents_replies_and_boundaries_tell() -> None:
    transcript = worked()
    usage = {"input_tokens": 4, "cache_creation_input_tokens": 1_000, "cache_read_input_tokens": 80_000}
    reply = transcript.say("I see.")
    reply["message"]["usage"] = usage | {"output_tokens": 96}
    side = transcript.say("A subagent's.", isSidechain=True)
    side["message"]["usage"] = {"input_tokens": 7}
    failed = transcript.say("API Error", isApiErrorMessage=True)
    failed["message"]["usage"] = dict.fromkeys(usage, 0)
    ledger = folded(Ledger("one"), transcript.entries)
    assert ledger.context == 81_100
    boundary = {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"preTokens": 82_000}}
    assert entry_of(boundary).parts == (Compacted(82_000),)
    assert folded(ledger, [boundary]).context == 82_000, "until the next reply, what it held before"
    assert Ledger.from_json(ledger.to_json()).context == 82_000


@pytest.mark.parametrize(
    "usage", [None, "x", [], {}, {"input_tokens": "9"}, {"input_tokens": -1}, {"output_tokens": None}]
)
def test_a_reply_that_does_not_tell_its_tokens_tells_none(usage: object) -> None:
    line = {"type": "assistant", "message": {"content": [], "usage": usage}}
    assert entry_of(line).context is None
    boundary = {"type": "system", "subtype": "compact_boundary", "compactMetadata": usage}
    assert entry_of(boundary).parts == (Compacted(None),)


# -- things -----------------------------------------------------------------------------------------------------------


def test_what_was_told_is_counted_kind_by_kind() -> None:
    transcript = worked(files=120)
    transcript.run("TodoWrite", {"todos": [{"content": "mend it", "status": "pending"}]})
    ledger = folded(Ledger("one"), transcript.entries)
    told = told_of(ledger)
    counts = {one.kind: (one.had, one.told) for one in counts_of(ledger, PROJECT, told)}
    read, read_told = counts.pop("read")
    assert counts == {"request": (2, 2), "changed": (1, 1), "error": (1, 1), "step": (1, 1)}
    assert read == 120 and 20 < read_told < 120
    assert "Files read besides (120): " in told and len([one for one in paths_in(told) if "file_" in one]) == read_told
    assert {one.kind: one.told for one in counts_of(ledger, PROJECT, "")} == dict.fromkeys([*counts, "read"], 0)


def test_a_file_whose_name_ends_like_one_that_was_told_was_not_told() -> None:
    named = list(paths_in("- Files read besides (4): src/a.py, old.py (removed); in src/deep/: b.py, c.py, and 1 more"))
    assert named[:4] == ["src/a.py", "old.py", "src/deep/b.py", "src/deep/c.py"]
    assert list(paths_in('- The user asked last: "Files: a.py"')) == []


def test_actions_are_told_in_order_each_once_with_the_list_as_one_and_without_subagents() -> None:
    transcript = Transcript(PROJECT)
    transcript.ask("Go on.")
    transcript.say("I look first.", stop_reason=None)
    transcript.read("/x/a.py")
    transcript.call("Bash", {"command": "ls"}, isSidechain=True)
    transcript.run("TodoWrite", {"todos": [{"content": "mend it", "status": "in_progress"}]})
    for _ in range(3):
        transcript.run("Bash", {"command": "pytest -x\ntests"})
    transcript.run("WebSearch", {"query": "leaks"})
    found = list(actions_in(map(entry_of, transcript.entries)))
    assert [(one.kind, one.text) for one in found] == [
        ("asked", "Go on."),
        ("said", "I look first."),
        ("read", "/x/a.py"),
        ("planned", "mend it"),
        ("ran", "pytest -x tests"),
        ("used", "WebSearch"),
    ]
    assert [one.at for one in found] == sorted(one.at for one in found) and found[0].at > 0


# -- the picture ------------------------------------------------------------------------------------------------------


def a_break(occasion: Occasion, **knew: Any) -> Break:
    ledger = folded(Ledger("one"), worked().entries)
    told = told_of(ledger) if occasion is not Occasion.RESUME else ""
    counted: dict[str, Any] = {"counts": counts_of(ledger, PROJECT, told)}
    known = replace(knowledge_of(ledger, PROJECT), **counted | knew)
    own = occasion in (Occasion.COMPACT, Occasion.RESUME)
    kinds = ("request", "modified", "read", "failed")
    at = known.last_at + 4 * MINUTE
    return Break(
        1, "file:///home/me/project", "two", None if own else "one", occasion.value, kinds, at, 9_000, told, known
    )


def went_on(at: int, *actions: Action) -> Continued:
    did = Knowledge("two", changed=(KnownFile("leak.py", 1, at + 1),), last_at=at + 1)
    return Continued("two", did, live=False, ended_at=None, first=actions)


def test_a_compaction_loses_in_tokens_and_goes_on_with_what_it_was_told() -> None:
    one = a_break(Occasion.COMPACT, context=167_316)
    shown = survival(
        one, went_on(one.at, Action("said", "On.", one.at + 900), Action("changed", "leak.py", one.at + 12_000))
    )
    assert shown is not None and shown.kind == "compacted"
    assert shown.things[-1].text == "167,316 tokens of conversation" and not shown.things[-1].told
    assert [(step.kind, step.after, step.known) for step in shown.steps] == [
        ("said", "at once", False),
        ("changed", "12 s later", True),
    ]
    assert shown.sentence.startswith("Its 167,316 tokens of conversation were compacted. It was told of them in ")
    assert " tokens: 2 requests, 1 changed file, 3 files it had only read, 1 error. " in shown.sentence
    for frame in (WIDE, NARROW):
        picture = draw(shown, one.at, frame)
        assert [wire.kind for wire in picture.wires if wire.kind == "new"] == ["new"]
        assert all(0 <= label.x <= frame.width for label in picture.labels) and picture.height > picture.floor


@pytest.mark.parametrize(("letter", "em"), [("w", 0.82), ("M", 0.87), ("\u4e2d", 1.0), ("a", 0.62), ("<", 0.84)])
@pytest.mark.parametrize("frame", [WIDE, NARROW])
def test_no_label_is_wider_than_its_place(letter: str, em: float, frame: Frame) -> None:
    """With the letters' widths in a wide font."""
    text = letter * 5_000
    one = a_break(Occasion.RESUME, request=text, changed=(KnownFile(text, 1, 1),), doing=text)
    kinds = ("asked", "said", "read", "changed", "ran")
    shown = survival(one, went_on(one.at, *(Action(kind, text, one.at) for kind in kinds)))
    assert shown is not None
    labels = [label for label in draw(shown, one.at, frame).labels if letter in label.text and "…" in label.text]
    assert len(labels) >= 8
    for label in labels:
        space = label.x if label.anchor == "end" else frame.width - label.x
        assert label.text.count(letter) * em * frame.font <= space, label


def test_a_path_that_is_cut_keeps_its_name() -> None:
    path = "src/" + "very/deep/folders/" * 5 + "charge.py"
    shown = survival(a_break(Occasion.RESUME, changed=(KnownFile(path, 1, 1),)), None)
    assert shown is not None
    for frame, begins in ((WIDE, "…"), (NARROW, "charge.py")):
        (label,) = [one.text for one in draw(shown, 0, frame).labels if " changed " in one.kind]
        assert label.startswith(begins) and label.endswith("charge.py")


def test_a_kill_that_is_resumed_carries_everything_but_the_call() -> None:
    one = a_break(Occasion.RESUME, doing="Bash: pytest")
    shown = survival(one, None)
    assert shown is not None and shown.kind == "resumed" and shown.losses == ()
    assert [thing.text for thing in shown.things if not thing.told] == ["Bash: pytest"]
    assert "resumed after 4 min with its whole conversation: 2 turns." in shown.sentence
    assert "It has not done anything since." in shown.sentence


def test_what_waits_tells_how_much_the_next_agent_would_get() -> None:
    ledger = folded(Ledger("one"), worked(files=120).entries)
    told = told_of(ledger)
    knew = replace(knowledge_of(ledger, PROJECT), counts=counts_of(ledger, PROJECT, told))
    shown = waiting(knew, told, ["request", "read", "modified"])
    lost = [thing.text for thing in shown.things if not thing.told]
    assert lost[0].endswith(" of 120 files it had only read") and lost[-1] == "2 turns of conversation"
    assert any(thing.kind == "more" and thing.told for thing in shown.things), "those that are told and not named here"
    assert draw(shown, 0, WIDE).is_open


def test_a_break_that_an_earlier_version_kept_is_shown_without_numbers() -> None:
    one = a_break(Occasion.CRASH, counts=())
    without = went_on(one.at)
    shown = survival(one, without)
    assert shown is not None and shown.losses == ()
    assert [(step.kind, step.text, step.after, step.known) for step in shown.steps] == [
        ("changed", "leak.py", None, True)
    ]
    assert Knowledge.from_stored({"session_id": "old"}).counts == ()
    stored = one.knew
    assert stored is not None and Knowledge.from_stored(json.loads(stored.to_json())) == stored
