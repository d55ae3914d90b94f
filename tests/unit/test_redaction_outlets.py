"""What is stored as it was written is masked where it is told to another session, or leaves the machine."""

from __future__ import annotations

from pathlib import Path

from holdfast.bridge.chat.wording import shown
from holdfast.bridge.model import Restart, Task, Update, UpdateKind
from holdfast.history.model import Found, Hit
from holdfast.history.search import by_conversation
from holdfast.history.views import found_view
from holdfast.reasoning.fulltext import Term
from holdfast.redaction import MASK
from holdfast.text.quoting import quoted

PLANTED = "Br4mble-77"
TOLD = f"Log in with password {PLANTED} and go on."


def test_a_thought_a_title_or_a_task_is_masked_where_a_briefing_tells_it() -> None:
    assert PLANTED not in quoted(TOLD, 200) and MASK in quoted(TOLD, 200)
    cut = quoted(f"{'x ' * 50}password {PLANTED}", 112)
    assert PLANTED[:3] not in cut, "no half of a secret is told"


def test_an_update_is_masked_before_a_chat_or_the_webhook_gets_it() -> None:
    told = Update(1, "team", UpdateKind.REPLY, None, TOLD, 0)
    assert PLANTED not in shown(told, None).text and MASK in shown(told, None).text
    asked = Update(3, "team", UpdateKind.REPLY, None, "Which?", 0, buttons=((TOLD, "a"),))
    assert [PLANTED in button.label for button in shown(asked, None).buttons] == [False]
    restart = Update(
        2, "team", UpdateKind.SESSION_RESTART, None, "It was started again.", 0, restart=Restart("team", "r", "s")
    )
    view = shown(restart, Task(TOLD, target="team"))
    assert PLANTED not in view.text and MASK in view.text


def test_a_passage_of_an_older_import_is_masked_where_it_is_found() -> None:
    found = by_conversation([Hit("s", "/p", "user", TOLD, 0, "/t")], [Term(("log",))], 5)
    (told,) = found_view(Found(found, 1, 0), Path("/c"))["results"]
    assert PLANTED not in told["line"] and MASK in told["line"]
