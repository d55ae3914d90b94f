"""What the relay remembers of a conversation, so that a daemon can die in it and the agent never notices.

No sockets and no clock: lines come in, bytes for the client and for the daemon come out.
"""

from __future__ import annotations

import os

from holdfast.relay.lines import Message, Overlong, Unreadable, encode, end_members, error_reply, read_line

TYPE_CHECKING = False  # importing typing would double the relay's start-up
if TYPE_CHECKING:
    from typing import Any

    Key = tuple[type, Any]

KEY_META = "holdfast/key"
SUBSCRIPTION_META = "io.modelcontextprotocol/subscriptionId"
SUBSCRIBE = "resources/subscribe"
UNSUBSCRIBE = "resources/unsubscribe"
LISTEN = "subscriptions/listen"
LISTEN_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
INITIALIZED = "notifications/initialized"

UNREACHABLE = -32000
INVALID_REQUEST = -32600
MAX_HELD = 32 * 1024 * 1024
MAX_LIVES = 10


class Waiting:
    """A client's request that has no answer yet."""

    __slots__ = ("acknowledged", "id", "line", "lives", "method", "since", "uri")

    def __init__(self, message: Message, line: bytes, now: float) -> None:
        self.id = message.id
        self.method = message.method
        self.uri = str(message.params.get("uri"))
        self.line = line
        self.since = now
        self.lives = 0
        self.acknowledged = False

    @property
    def key(self) -> Key:
        """Its id with its JSON type: 1 and "1" are two ids."""
        return key_of(self.id)


def key_of(id: Any) -> Key:
    """An id as a dictionary key that keeps 1, 1.0, true and "1" apart; what is no id is nobody's key."""
    return (type(id), id) if isinstance(id, str | int | float) else (type(None), None)


class RelaySession:
    """One agent's conversation, carried over any number of daemon lives."""

    def __init__(self, relay: str | None = None) -> None:
        self.relay = relay or os.urandom(16).hex()
        self.to_client = bytearray()
        self.to_daemon = bytearray()
        self.notes: list[str] = []
        self._connected = False
        self._waiting: dict[Key, Waiting] = {}
        self._held = 0
        self._initialize: Message | None = None
        self._initialized: bytes | None = None
        self._subscribed: dict[str, None] = {}  # legacy subscriptions, in the order they were made
        self._own: dict[Key, str] = {}
        self._asked: dict[Key, Any] = {}
        self._life = 0
        self._counter = 0

    @property
    def open_calls(self) -> int:
        """How many requests a client that hung up would still want the answer of."""
        return sum(1 for request in self._waiting.values() if request.method != LISTEN)

    @property
    def impatient(self) -> bool:
        """Whether anybody waits for a daemon."""
        return any(not request.acknowledged for request in self._waiting.values())

    # From the client

    def from_client(self, line: bytes | Overlong, now: float) -> None:
        """Take one line the agent wrote."""
        message = read_line(line)
        if message is None:
            return
        if isinstance(message, Unreadable):
            for reply in message.replies:
                self._to_client(reply)
        elif message.is_request:
            self._request(message, now)
        elif message.method is not None:
            self._notification(message)
        else:
            self._answer(message)

    def _request(self, message: Message, now: float) -> None:
        if key_of(message.id) in self._waiting:
            reason = "id: a request with this id still waits for its answer. Give each one an id of its own."
            self._to_client(error_reply(message.id, INVALID_REQUEST, reason))
            return
        line = self._marked(message)
        if self._held + len(line) > MAX_HELD:
            reason = f"Over {MAX_HELD} bytes of requests wait for answers. Repeat this one in a while."
            self._to_client(error_reply(message.id, UNREACHABLE, reason))
            return
        request = Waiting(message, line, now)
        self._waiting[request.key] = request
        self._held += len(line)
        if message.method == "initialize":
            self._initialize, self._initialized = message, None
            self._subscribed.clear()
        self._to_daemon(line)

    def _marked(self, message: Message) -> bytes:
        """The request as the daemon gets it: a call carries a key, the same one each time it is repeated."""
        params = message.body.get("params")
        if message.method != "tools/call" or not isinstance(params, dict):
            return message.line
        meta = params.get("_meta")
        if meta is not None and not isinstance(meta, dict):
            return message.line
        key = f"{self.relay}:{self._next()}"
        return encode({**message.body, "params": {**params, "_meta": {**(meta or {}), KEY_META: key}}})

    def _notification(self, message: Message) -> None:
        if message.method == INITIALIZED:
            self._initialized = message.line
        elif message.method == CANCELLED:
            request = self._waiting.get(key_of(message.params.get("requestId")))
            if request is None or request.method == "initialize":
                return
            self._forget(request)
        # While no daemon is there a notification is dropped: it tells of a change in what the next daemon
        # learns afresh, or of a request that died with the last one.
        self._to_daemon(message.line)

    def _answer(self, message: Message) -> None:
        asked = self._asked.pop(key_of(message.id), None)
        if asked is not None:
            self._to_daemon(encode({**message.body, "id": asked}))

    # From the daemon

    def from_daemon(self, line: bytes | Overlong) -> None:
        """Take one line the daemon wrote."""
        if isinstance(line, Overlong):
            self._overlong_answer(line)
            return
        message = read_line(line)
        if isinstance(message, Unreadable):
            self.notes.append(f"dropped a line of {len(line)} bytes from the daemon that is not JSON-RPC")
        elif message is not None and message.is_request:
            self._ask(message)
        elif message is not None and message.method is not None:
            self._notify(message)
        elif message is not None:
            self._answered(message)

    def _overlong_answer(self, line: Overlong) -> None:
        ends = end_members(line)
        request = self._waiting.get(key_of(ends.get("id")))
        if request is None or "method" in ends:
            self.notes.append(f"dropped a line of {line.size} bytes from the daemon: over the limit")
            return
        self._forget(request)
        reason = f"The answer has {line.size} bytes, more than a line may have. Ask for less at once."
        self._to_client(error_reply(request.id, UNREACHABLE, reason))

    def _ask(self, message: Message) -> None:
        """Pass on the daemon's own request under an id that no other daemon's request ever had."""
        id = f"hf-{self._life}-{self._next()}"
        self._asked[key_of(id)] = message.id
        self._to_client(encode({**message.body, "id": id}))

    def _notify(self, message: Message) -> None:
        if message.method == CANCELLED:
            self._withdraw(message)
            return
        if message.method == LISTEN_ACKNOWLEDGED:
            meta = message.params.get("_meta")
            stream = meta.get(SUBSCRIPTION_META) if isinstance(meta, dict) else None
            request = self._waiting.get(key_of(stream))
            if request is None or request.acknowledged:
                return
            request.acknowledged = True
        self._to_client(message.line)

    def _withdraw(self, message: Message) -> None:
        """The daemon cancels a request of its own, or ends a subscription stream of the client's."""
        cancelled = key_of(message.params.get("requestId"))
        for renumbered, original in self._asked.items():
            if key_of(original) == cancelled:
                del self._asked[renumbered]
                params = {**message.params, "requestId": renumbered[1]}
                self._to_client(encode({**message.body, "params": params}))
                return
        request = self._waiting.get(cancelled)
        if request is not None and request.method == LISTEN:
            self._forget(request)
            self._to_client(message.line)

    def _answered(self, message: Message) -> None:
        own = self._own.pop(key_of(message.id), None)
        if own is not None:
            if "error" in message.body:
                reason = str(message.body["error"])[:200]
                self.notes.append(f"the daemon refused the repeated {own}: {reason}")
            return
        request = self._waiting.get(key_of(message.id))
        if request is None:
            return
        self._forget(request)
        self._learn(request, message)
        self._to_client(message.line)

    def _learn(self, request: Waiting, answer: Message) -> None:
        """Note what the answer changed in the state a new daemon must be told."""
        failed = "error" in answer.body
        if request.method == "initialize" and failed:
            self._initialize = self._initialized = None
        elif failed:
            return
        elif request.method == SUBSCRIBE:
            self._subscribed[request.uri] = None
        elif request.method == UNSUBSCRIBE:
            self._subscribed.pop(request.uri, None)

    # Daemons come and go

    def connected(self) -> None:
        """A daemon is there: tell it everything it must know, then repeat what nobody answered."""
        self._connected = True
        self._life += 1
        opening = next((r for r in self._waiting.values() if r.method == "initialize"), None)
        if opening is not None:
            self._to_daemon(opening.line)
        elif self._initialize is not None:
            self._repeat("initialize", self._initialize.body)
        if self._initialized is not None:
            self._to_daemon(self._initialized)
        for uri in self._subscribed:
            self._repeat(SUBSCRIBE, {"jsonrpc": "2.0", "method": SUBSCRIBE, "params": {"uri": uri}})
        for request in self._waiting.values():
            if request is not opening:
                self._to_daemon(request.line)

    def _repeat(self, method: str, body: dict[str, Any]) -> None:
        id = f"hf-{self.relay}-{self._next()}"
        self._own[key_of(id)] = method
        self._to_daemon(encode({**body, "id": id}))

    def lost(self, now: float) -> None:
        """The daemon is gone, and with it all it was told and all it asked."""
        self._connected = False
        self.to_daemon.clear()
        self._own.clear()
        for renumbered in self._asked:
            params = {"requestId": renumbered[1], "reason": "The daemon that asked is gone."}
            self._to_client(encode({"jsonrpc": "2.0", "method": CANCELLED, "params": params}))
        self._asked.clear()
        for request in list(self._waiting.values()):
            request.since = now
            request.lives += 1
            if request.lives >= MAX_LIVES and not request.acknowledged:
                reason = f"{MAX_LIVES} daemons ended with this request unanswered. See daemon.log at home."
                self._fail(request, reason)

    def expire(self, now: float, patience: float, reason: str) -> None:
        """Give up, with an error, each request that has waited too long for a daemon to be there."""
        if self._connected:
            return
        for request in list(self._waiting.values()):
            if now - request.since >= patience and not request.acknowledged:
                self._fail(request, reason)

    def give_up(self, reason: str) -> None:
        """Answer everything that waits with an error: no daemon will be there soon."""
        for request in list(self._waiting.values()):
            if not request.acknowledged:
                self._fail(request, reason)

    def next_expiry(self, patience: float) -> float | None:
        """When the first waiting request is to be given up, or None."""
        if self._connected:
            return None
        return min((r.since + patience for r in self._waiting.values() if not r.acknowledged), default=None)

    def _fail(self, request: Waiting, reason: str) -> None:
        self._forget(request)
        if request.method == "initialize":
            self._initialize = self._initialized = None
        if request.method == "tools/call" and request.lives:
            reason += " This call had reached a daemon before: look whether it took effect."
        self._to_client(error_reply(request.id, UNREACHABLE, reason))

    def _forget(self, request: Waiting) -> None:
        del self._waiting[request.key]
        self._held -= len(request.line)

    def _next(self) -> int:
        self._counter += 1
        return self._counter

    def _to_client(self, line: bytes) -> None:
        self.to_client += line + b"\n"

    def _to_daemon(self, line: bytes) -> None:
        if self._connected:
            self.to_daemon += line + b"\n"
