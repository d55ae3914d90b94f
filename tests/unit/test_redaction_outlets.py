"""What is stored as it was written is masked where it is told to another session, or leaves the machine."""

from __future__ import annotations

from pathlib import Path

from holdfast.bridge.chat.wording import shown
from holdfast.bridge.model import Task, Update, UpdateKind
from holdfast.history.finding import Hit, grouped
from holdfast.quoting import quoted
from holdfast.redaction import MASK

PLANTED = "Br4mble-77"
TOLD = f"Log in with password {PLANTED} and go on."


def test_a_thought_a_title_or_a_task_is_masked_where_a_briefing_tells_it() -> None:
    assert PLANTED not in quoted(TOLD, 200) and MASK in quoted(TOLD, 200)
    cut = quoted(f"{'x ' * 50}password {PLANTED}", 112)
    assert PLANTED[:3] not in cut, "no half of a secret is told"


def test_an_update_is_masked_before_a_chat_or_the_webhook_gets_it() -> None:
    told = Update(1, "team", UpdateKind.REPLY, None, TOLD, {}, False, 0)
    assert PLANTED not in shown(told, None).text and MASK in shown(told, None).text
    asked = Update(3, "team", UpdateKind.REPLY, None, "Which?", {"buttons": [[TOLD, "a"]]}, False, 0)
    assert [PLANTED in button.label for button in shown(asked, None).buttons] == [False]
    restart = Update(2, "team", UpdateKind.SESSION_RESTART, None, "It was started again.", {"new": "s"}, False, 0)
    view = shown(restart, Task("team", None, TOLD, None, None, (), 0, None))
    assert PLANTED not in view.text and MASK in view.text


def test_a_passage_of_an_older_import_is_masked_where_it_is_found() -> None:
    found = grouped([Hit("s", "/p", "user", TOLD, 0, "/t")], ["log"], 5, Path("/c"))
    assert PLANTED not in found[0]["line"] and MASK in found[0]["line"]
