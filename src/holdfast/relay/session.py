"""State of one agent's MCP conversation, so that a daemon can die during it and the agent never notices.

No sockets and no clock: lines come in, bytes for the client and for the daemon come out.
"""

from __future__ import annotations

import os

from holdfast.relay.lines import Message, Overlong, Unreadable, encode, end_members, error_reply, read_line

TYPE_CHECKING = False  # importing typing would double the relay's start-up
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.relay.answers import Answer, Asked

    Key = tuple[type, Any]

KEY_META = "holdfast/key"
SUBSCRIPTION_META = "io.modelcontextprotocol/subscriptionId"
SUBSCRIBE = "resources/subscribe"
UNSUBSCRIBE = "resources/unsubscribe"
LISTEN = "subscriptions/listen"
LISTEN_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
INITIALIZED = "notifications/initialized"

INITIALIZE = "initialize"
DISCOVER = "server/discover"
PING = "ping"
ENVELOPE = "io.modelcontextprotocol/protocolVersion"
LEGACY, MODERN = "legacy", "modern"
RESOURCES = "resources/list"
LISTS = {
    "tools/list": ("notifications/tools/list_changed", "toolsListChanged"),
    "prompts/list": ("notifications/prompts/list_changed", "promptsListChanged"),
    "resources/templates/list": ("notifications/resources/list_changed", "resourcesListChanged"),
    RESOURCES: ("notifications/resources/list_changed", "resourcesListChanged"),
}
"""Lists that can be answered before a daemon is connected, with their change notification and modern-era filter.

The resources depend on stored thoughts, so the daemon's answer is never stored. But Claude Code uses no tools before it
has received a list of resources.
"""
ANSWERABLE = (INITIALIZE, DISCOVER, PING, *LISTS)

UNREACHABLE = -32000
INVALID_REQUEST = -32600
MAX_HELD = 32 * 1024 * 1024
MAX_LIVES = 10


class Waiting:
    """A client's request that has not been answered yet."""

    __slots__ = ("acknowledged", "asked", "body", "id", "line", "lives", "method", "since", "uri")

    def __init__(self, message: Message, line: bytes, now: float, asked: Asked | None) -> None:
        self.asked = asked
        self.body = message.body if asked is not None or message.method == LISTEN else {}
        self.id = message.id
        self.method = message.method
        self.uri = str(message.params.get("uri"))
        self.line = line
        self.since = now
        self.lives = 0
        self.acknowledged = False

    @property
    def key(self) -> Key:
        """Its id with its JSON type: 1 and "1" are different ids."""
        return key_of(self.id)


def key_of(id: Any) -> Key:
    """Return an id as a dictionary key that distinguishes 1, 1.0, true and "1"; an invalid id matches no request."""
    return (type(id), id) if isinstance(id, str | int | float) else (type(None), None)


def _envelope(message: Message) -> str | None:
    """Return the protocol version that a request of the modern era carries."""
    meta = message.params.get("_meta")
    version = meta.get(ENVELOPE) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


def _answer_in(message: Message) -> Answer:
    return {name: message.body[name] for name in ("result", "error") if name in message.body}


class RelaySession:
    """One agent's conversation, continued across any number of daemon restarts."""

    def __init__(self, relay: str | None = None, find: Callable[[Asked], Answer | None] | None = None) -> None:
        """`find` returns what a daemon would answer, for use while none is ready yet."""
        self.relay = relay or os.urandom(16).hex()
        self.learned: list[tuple[Asked, Answer]] = []
        """A daemon's answers, to be stored for the next relay that has to wait for one."""
        self._find = find
        self._era: str | None = None
        self._protocol: str | None = None
        self._alone = False
        self._told: dict[Asked, tuple[dict[str, Any], Answer]] = {}
        self._changed: dict[str, str] = {}
        self.to_client = bytearray()
        self.to_daemon = bytearray()
        self.notes: list[str] = []
        self._connected = False
        self._waiting: dict[Key, Waiting] = {}
        self._held = 0
        self._initialize: Message | None = None
        self._initialized: bytes | None = None
        self._subscribed: dict[str, None] = {}  # legacy subscriptions, in order
        self._own: dict[Key, tuple[str, Asked | None]] = {}
        self._asked: dict[Key, Any] = {}
        self._life = 0
        self._counter = 0

    @property
    def open_calls(self) -> int:
        """Number of open requests whose answers a client still wants after closing its input."""
        return sum(1 for request in self._waiting.values() if request.method != LISTEN)

    @property
    def impatient(self) -> bool:
        """Whether any request is waiting for a daemon."""
        return any(not request.acknowledged for request in self._waiting.values())

    # From the client

    def from_client(self, line: bytes | Overlong, now: float) -> None:
        """Handle one line from the agent."""
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
        if self._era is None:
            self._era = MODERN if _envelope(message) is not None and message.method != INITIALIZE else LEGACY
        if message.method == INITIALIZE:
            self._initialize, self._initialized = message, None
            self._subscribed.clear()
            self._protocol = message.params.get("protocolVersion")
        request = Waiting(message, line, now, self._asked_by(message))
        if self._alone and self._answer_alone(request):
            return
        self._waiting[request.key] = request
        self._held += len(line)
        self._to_daemon(line)

    def _asked_by(self, message: Message) -> Asked | None:
        """Return the question in a request if it can be answered before a daemon is connected."""
        if self._find is None or message.method not in ANSWERABLE:
            return None
        protocol, envelope = self._protocol, _envelope(message)
        if message.method == DISCOVER and envelope is None:
            protocol = ""  # a client of the handshake era asks whether there is another one
        elif self._era == MODERN:
            protocol = envelope
        elif envelope is not None:
            return None  # the daemon refuses it on this connection
        if not isinstance(protocol, str) or (message.method in LISTS and message.params.keys() - {"_meta"}):
            return None  # no handshake yet, or the next page of a list
        return message.method, self._era or LEGACY, protocol

    def _answer_alone(self, request: Waiting) -> bool:
        """Answer as a daemon would, if known. The daemon is asked the same later; a difference is announced."""
        if request.method == LISTEN:
            self._acknowledge_alone(request)
        if self._find is None or request.asked is None:
            return False
        answer = self._find(request.asked)
        if answer is None:
            return False
        if "result" in answer and request.method != PING:
            self._told[request.asked] = (request.body, answer)
            if self._connected:  # to a daemon that is not ready yet: it needs the handshake before it can serve a call
                self._repeat(request.asked[0], request.body, request.asked)
        self._to_client(encode({"jsonrpc": "2.0", "id": request.id, **answer}))
        return True

    def _marked(self, message: Message) -> bytes:
        """Return the request for the daemon: a call carries a key, which stays the same when it is repeated."""
        params = message.body.get("params")
        if message.method != "tools/call" or not isinstance(params, dict):
            return message.line
        meta = params.get("_meta")
        if meta is not None and not isinstance(meta, dict):
            return message.line
        key = f"{self.relay}:{self._next()}"
        return encode({**message.body, "params": {**params, "_meta": {**(meta or {}), KEY_META: key}}})

    def _acknowledge_alone(self, stream: Waiting) -> None:
        """Acknowledge a client's subscription: Claude Code asks for no tools before that.

        The request stays open: it is also sent to the daemon, whose acknowledgement is not forwarded.
        """
        wanted = (stream.body.get("params") or {}).get("notifications")
        if self._find is None or self._era != MODERN or stream.acknowledged or not isinstance(wanted, dict):
            return
        flags = dict.fromkeys(flag for _, flag in LISTS.values())
        uris = wanted.get("resourceSubscriptions")
        if wanted.keys() - {*flags, "resourceSubscriptions"} or not isinstance(uris, list | None):
            return  # left to the daemon to answer
        honored: dict[str, Any] = {flag: True for flag in flags if wanted.get(flag) is True}
        if uris:
            honored["resourceSubscriptions"] = uris
        params = {"_meta": {SUBSCRIPTION_META: stream.id}, "notifications": honored}
        stream.acknowledged = True
        self._to_client(encode({"jsonrpc": "2.0", "method": LISTEN_ACKNOWLEDGED, "params": params}))

    def _notification(self, message: Message) -> None:
        if message.method == INITIALIZED:
            self._initialized = message.line
            self._announce()
        elif message.method == CANCELLED:
            request = self._waiting.get(key_of(message.params.get("requestId")))
            if request is None or request.method == INITIALIZE:
                return
            self._forget(request)
        # Without a daemon a notification is dropped: it is about a state that the next daemon learns anyway,
        # or about a request that ended with the last one.
        self._to_daemon(message.line)

    def _answer(self, message: Message) -> None:
        asked = self._asked.pop(key_of(message.id), None)
        if asked is not None:
            self._to_daemon(encode({**message.body, "id": asked}))

    # From the daemon

    def from_daemon(self, line: bytes | Overlong) -> None:
        """Handle one line from the daemon."""
        self._alone = False
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
        ends = end_members(line.head, line.tail)
        request = self._waiting.get(key_of(ends.get("id")))
        if request is None or "method" in ends:
            self.notes.append(f"dropped a line of {line.size} bytes from the daemon: over the limit")
            return
        self._forget(request)
        reason = f"The answer has {line.size} bytes, more than a line may have. Ask for less at once."
        self._to_client(error_reply(request.id, UNREACHABLE, reason))

    def _ask(self, message: Message) -> None:
        """Forward the daemon's own request under an id that no other daemon's request has used."""
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
            self._announce()
            return
        self._to_client(message.line)

    def _withdraw(self, message: Message) -> None:
        """Handle the daemon's cancellation of its own request or of a client's subscription stream."""
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
            self._answered_us(*own, message)
            return
        request = self._waiting.get(key_of(message.id))
        if request is None:
            return
        self._forget(request)
        self._learn(request, message)
        self._to_client(message.line)
        if request.asked is not None:
            self._note(request.asked, _answer_in(message))

    def _answered_us(self, method: str, asked: Asked | None, message: Message) -> None:
        """Handle an answer to the relay's own request: a repeated handshake, or a check of an earlier answer."""
        answer = _answer_in(message)
        if "error" in answer:
            self.notes.append(f"the daemon refused the repeated {method}: {str(answer['error'])[:200]}")
        if asked is None:
            return
        told = self._told.pop(asked, None)
        if told is None or "error" in answer:
            return
        self._note(asked, answer)
        if told[1] != answer:
            self._changed.update([LISTS[method]] if method in LISTS else LISTS.values())
            self._announce()

    def _note(self, asked: Asked, answer: Answer) -> None:
        """Store an answer that is valid for the next relay too: no error, and nothing about stored thoughts."""
        if "result" in answer and asked[0] not in (PING, RESOURCES):
            self.learned.append((asked, answer))

    def _announce(self) -> None:
        """Notify the client of lists that differ from the earlier answer; if not subscribed yet, once it is."""
        if self._era == LEGACY:
            if self._initialized is None:
                return
            for method in self._changed:
                self._to_client(encode({"jsonrpc": "2.0", "method": method}))
            self._changed.clear()
            return
        for request in self._waiting.values():
            if request.method == LISTEN and request.acknowledged:
                self._announce_to(request)

    def _announce_to(self, stream: Waiting) -> None:
        wanted = (stream.body.get("params") or {}).get("notifications")
        for method, flag in list(self._changed.items()):
            if isinstance(wanted, dict) and wanted.get(flag) is True:
                params = {"_meta": {SUBSCRIPTION_META: stream.id}}
                self._to_client(encode({"jsonrpc": "2.0", "method": method, "params": params}))
                del self._changed[method]

    def _learn(self, request: Waiting, answer: Message) -> None:
        """Update the state that must be sent to a new daemon."""
        failed = "error" in answer.body
        if request.method == INITIALIZE and failed:
            self._initialize = self._initialized = None
        elif failed:
            return
        elif request.method == SUBSCRIBE:
            self._subscribed[request.uri] = None
        elif request.method == UNSUBSCRIBE:
            self._subscribed.pop(request.uri, None)

    # Daemons come and go

    def alone(self) -> None:
        """Answer what can be answered without a daemon, until one is ready."""
        self._alone = True
        for request in list(self._waiting.values()):
            if self._answer_alone(request):
                self._forget(request)

    def connected(self, *, ready: bool = True) -> None:
        """Send a newly connected daemon everything it must know, then repeat the unanswered requests.

        One that is not ready reads all that, but answers only after it has finished its imports.
        """
        if not ready:
            self.alone()
        self._alone = not ready
        self._connected = True
        self._life += 1
        opening = next((r for r in self._waiting.values() if r.method == INITIALIZE), None)
        if opening is not None:
            self._to_daemon(opening.line)
        elif self._initialize is not None:
            self._repeat(INITIALIZE, self._initialize.body, self._asked_by(self._initialize))
        if self._initialized is not None:
            self._to_daemon(self._initialized)
        for asked, (body, _) in self._told.items():
            if asked[0] != INITIALIZE:
                self._repeat(asked[0], body, asked)
        for uri in self._subscribed:
            self._repeat(SUBSCRIBE, {"jsonrpc": "2.0", "method": SUBSCRIBE, "params": {"uri": uri}})
        for request in self._waiting.values():
            if request is not opening:
                self._to_daemon(request.line)

    def _repeat(self, method: str, body: dict[str, Any], asked: Asked | None = None) -> None:
        id = f"hf-{self.relay}-{self._next()}"
        self._own[key_of(id)] = (method, asked)
        self._to_daemon(encode({**body, "id": id}))

    def lost(self, now: float) -> None:
        """Handle the loss of the daemon, with its state and its own requests."""
        self._connected = self._alone = False
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
        """Fail each request that has waited too long for a daemon."""
        if self._connected:
            return
        for request in list(self._waiting.values()):
            if now - request.since >= patience and not request.acknowledged:
                self._fail(request, reason)

    def give_up(self, reason: str) -> None:
        """Fail every waiting request: no daemon will be available soon."""
        self._alone = False
        for request in list(self._waiting.values()):
            if not request.acknowledged:
                self._fail(request, reason)

    def next_expiry(self, patience: float) -> float | None:
        """Return when the first waiting request expires, or None."""
        if self._connected:
            return None
        return min((r.since + patience for r in self._waiting.values() if not r.acknowledged), default=None)

    def _fail(self, request: Waiting, reason: str) -> None:
        self._forget(request)
        if request.method == INITIALIZE:
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
