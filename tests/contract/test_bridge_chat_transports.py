"""The seam of the chat transports: what every one of them promises, and what each promises besides."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest
from tests.bot_api import TOKEN, BotApi, Fault, Kind, bot_api
from tests.contract.bridge_chat_world import SECRET, Receiver, eventually, receiver

from holdfast.bridge.chat import Address, Button, ChatError, Outgoing, RetryLater, Transport, Undeliverable
from holdfast.bridge.chat.splitting import SHORTEST_LIMIT
from holdfast.bridge.chat.telegram import PollConflict, Telegram
from holdfast.bridge.chat.webhook_out import SignedWebhook
from holdfast.errors import BadInput
from holdfast.teams.team import Chat

pytestmark = pytest.mark.anyio

HERE = Address("homelab", Chat("-100", topic=3, allowed_users=(7,)))


@dataclass
class Line:
    """A transport and what is at its other end."""

    transport: Transport
    fail: Callable[[Kind], None]
    arrived: Callable[[], list[str]]
    open: Callable[[], int]
    rest: Callable[[], None]
    """Let the pause pass that the other end has asked for."""


@pytest.fixture(params=["telegram", "webhook"])
async def line(request: pytest.FixtureRequest) -> AsyncIterator[Line]:
    if request.param == "telegram":
        async with bot_api() as api:
            bot = Telegram(TOKEN, api=api.url)
            fail = lambda kind: api.faults.append(Fault("sendMessage", kind, seconds=3))  # noqa: E731
            yield Line(bot, fail, lambda: [one.text for one in api.sent], lambda: api.open, api.floods.clear)
            await bot.close()
    else:
        async with receiver() as far:
            hook = SignedWebhook(far.url, SECRET)
            arrived = lambda: [one["text"] for one in far.received]  # noqa: E731
            yield Line(hook, far.faults.append, arrived, lambda: far.open, lambda: None)
            await hook.close()


async def test_1_a_text_that_was_sent_has_arrived_and_has_an_id(line: Line) -> None:
    assert await line.transport.send(HERE, Outgoing("Grüße 😀", key="k1"))
    assert line.arrived() == ["Grüße 😀"]


async def test_2_texts_arrive_in_the_order_they_were_sent(line: Line) -> None:
    for number in range(5):
        await line.transport.send(HERE, Outgoing(f"text {number}", key=f"k{number}"))
    assert line.arrived() == [f"text {number}" for number in range(5)]


async def test_3_a_pause_that_is_asked_for_is_told_and_nothing_arrived(line: Line) -> None:
    line.fail(Kind.FLOOD)
    with pytest.raises(RetryLater) as told:
        await line.transport.send(HERE, Outgoing("text", key="k"))
    assert told.value.seconds == 3
    assert not told.value.uncertain
    assert line.arrived() == []


@pytest.mark.parametrize("kind", [Kind.ERROR, Kind.LOST, Kind.CUT])
async def test_4_where_it_may_have_arrived_the_error_says_so(line: Line, kind: Kind) -> None:
    line.fail(kind)
    with pytest.raises(ChatError) as told:
        await line.transport.send(HERE, Outgoing("text", key="k"))
    assert told.value.uncertain
    assert not isinstance(told.value, RetryLater | Undeliverable)


async def test_5_a_text_that_is_refused_is_undeliverable(line: Line) -> None:
    line.fail(Kind.REFUSED)
    with pytest.raises(Undeliverable):
        await line.transport.send(HERE, Outgoing("text", key="k"))


@pytest.mark.parametrize("kind", [Kind.FLOOD, Kind.ERROR, Kind.LOST, Kind.CUT, Kind.REFUSED])
async def test_6_after_any_failure_the_next_send_works(line: Line, kind: Kind) -> None:
    line.fail(kind)
    with pytest.raises(ChatError):
        await line.transport.send(HERE, Outgoing("first", key="k1"))
    line.rest()
    await line.transport.send(HERE, Outgoing("second", key="k2"))
    assert line.arrived()[-1] == "second"


async def test_7_a_text_of_the_longest_length_is_taken(line: Line) -> None:
    assert line.transport.longest > SHORTEST_LIMIT
    await line.transport.send(HERE, Outgoing("x" * line.transport.longest, key="k"))
    assert len(line.arrived()[0]) == line.transport.longest


async def test_8_where_nobody_listens_nothing_arrived_for_certain() -> None:
    for transport in (
        Telegram(TOKEN, api="http://127.0.0.1:9/bot"),
        SignedWebhook("http://127.0.0.1:9/hook", SECRET),
    ):
        with pytest.raises(ChatError) as told:
            await transport.send(HERE, Outgoing("text", key="k"))
        assert not told.value.uncertain
        await transport.close()


@pytest.mark.parametrize("kind", [None, Kind.ERROR, Kind.LOST, Kind.REFUSED])
async def test_9_secrets_are_in_no_log_and_in_no_error(
    line: Line, kind: Kind | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    said = ""
    if kind is not None:
        line.fail(kind)
    try:
        await line.transport.send(HERE, Outgoing("text", key="k"))
    except ChatError as error:
        said = f"{error!r} {error}"
    for secret in (TOKEN, TOKEN.partition(":")[2], SECRET):
        assert secret not in said
        assert secret not in caplog.text


async def test_10_a_closed_transport_leaves_no_connection_behind_and_opens_again(line: Line) -> None:
    await line.transport.send(HERE, Outgoing("first", key="k1"))
    assert line.open() > 0
    await line.transport.close()
    await eventually(lambda: line.open() == 0)
    await line.transport.send(HERE, Outgoing("second", key="k2"))
    assert line.arrived() == ["first", "second"]


# -- Telegram ---------------------------------------------------------------------------------------------------------


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with bot_api() as made:
        yield made


@pytest.fixture
async def telegram(api: BotApi) -> AsyncIterator[Telegram]:
    made = Telegram(TOKEN, api=api.url)
    yield made
    await made.close()


async def test_topic_buttons_marks_and_the_answered_message_reach_the_chat(api: BotApi, telegram: Telegram) -> None:
    buttons = [Button("Resume", "resume:1"), Button("Start fresh", "new:1")]
    await telegram.send(HERE, Outgoing("**Now**", key="k", buttons=buttons, reply_to="tg.4711.-100.33", urgent=True))
    (sent,) = api.sent
    assert (sent.chat, sent.topic, sent.text, sent.reply_to, sent.silent) == ("-100", 3, "Now", 33, False)
    assert sent.buttons == [("Resume", "resume:1"), ("Start fresh", "new:1")]
    assert [one["type"] for one in sent.entities] == ["bold"]


@pytest.mark.parametrize("other", ["tg.4711.-200.33", "tg.99.-100.33", "msg-1", "tg.4711.-100.x"])
async def test_a_message_from_elsewhere_is_not_answered_in_the_chat(
    api: BotApi, telegram: Telegram, other: str
) -> None:
    await telegram.send(HERE, Outgoing("text", key="k", reply_to=other))
    assert api.sent[0].reply_to is None


async def test_a_text_whose_marks_are_refused_is_sent_plain(api: BotApi, telegram: Telegram) -> None:
    api.faults.append(Fault("sendMessage", Kind.BAD_ENTITIES))
    await telegram.send(HERE, Outgoing("a **bold** word", key="k"))
    assert [(one.text, one.entities) for one in api.sent] == [("a **bold** word", [])]


async def test_a_chat_that_is_not_there_is_no_fault_of_the_text(api: BotApi, telegram: Telegram) -> None:
    api.chats = {"-1"}
    with pytest.raises(ChatError, match=r"teams\.json") as told:
        await telegram.send(HERE, Outgoing("text", key="k"))
    assert not isinstance(told.value, Undeliverable)


async def test_a_wrong_token_is_told_without_the_token(api: BotApi) -> None:
    wrong = Telegram(f"{TOKEN}x", api=api.url)
    for call in (wrong.introduce(), wrong.fetch(None, 0), wrong.send(HERE, Outgoing("text", key="k"))):
        with pytest.raises(ChatError, match="HOLDFAST_TELEGRAM_TOKEN") as told:
            await call
        assert TOKEN not in repr(told.value)
    await wrong.close()


async def test_a_webhook_that_is_set_is_a_conflict_for_polling(api: BotApi, telegram: Telegram) -> None:
    await telegram.use_webhook("https://example.org/telegram", "s" * 16)
    assert api.webhook == {"url": "https://example.org/telegram", "secret": "s" * 16}
    with pytest.raises(PollConflict) as told:
        await telegram.fetch(None, 0)
    assert told.value.webhook
    await telegram.use_polling()
    assert await telegram.fetch(None, 0) == []
    assert api.violations == []


@pytest.mark.parametrize("token", ["", "abc", "12:short", "12:" + "x" * 30 + "/../"])
def test_what_is_no_token_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(BadInput, match="HOLDFAST_TELEGRAM_TOKEN") as told:
        Telegram(token)
    assert not token or token not in str(told.value)


# -- the signed webhook -----------------------------------------------------------------------------------------------


@pytest.fixture
async def far() -> AsyncIterator[Receiver]:
    async with receiver() as made:
        yield made


async def test_every_attempt_has_the_same_id_and_a_good_signature(far: Receiver) -> None:
    hook = SignedWebhook(far.url, SECRET)
    far.faults += [Kind.ERROR, Kind.LOST]
    for _ in range(2):
        with pytest.raises(ChatError):
            await hook.send(HERE, Outgoing("text", key="homelab.1.1"))
    await hook.send(
        HERE, Outgoing("text", key="homelab.1.1", buttons=[Button("Yes", "approve:1")], reply_to="m1", urgent=True)
    )
    await hook.close()
    assert far.deliveries == ["homelab.1.1"] * 3
    assert far.forged == 0
    assert far.received == [
        {
            "id": "homelab.1.1",
            "target": "homelab",
            "text": "text",
            "urgent": True,
            "chat": "-100",
            "reply_to": "m1",
            "actions": [{"label": "Yes", "action": "approve:1"}],
        }
    ]


@pytest.mark.parametrize(
    ("url", "secret", "field"),
    [
        ("http://example.org/hook", SECRET, "HOLDFAST_WEBHOOK_URL"),
        ("https://example.org/hook", "short", "HOLDFAST_WEBHOOK_SECRET"),
        ("https://example.org/hook", " " * 40, "HOLDFAST_WEBHOOK_SECRET"),
    ],
)
def test_a_webhook_that_could_be_overheard_or_forged_is_refused(url: str, secret: str, field: str) -> None:
    with pytest.raises(BadInput, match=field):
        SignedWebhook(url, secret)
