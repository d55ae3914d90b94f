"""A signed webhook: every update of every target, posted to one URL.

The body is JSON: {"id", "target", "text", "urgent", "chat"?, "reply_to"?, "actions"?, "status"?}. The headers:

- `Holdfast-Delivery`: the id, the same for every attempt, so that a receiver can drop repetitions;
- `Holdfast-Timestamp`: seconds since 1970, when this attempt was made;
- `Holdfast-Signature`: `sha256=` and the hex HMAC-SHA256, under the shared secret, of timestamp, a dot and the body.

Any 2xx is taken for received. 429 and 503 may say Retry-After in seconds; other 4xx that concern the text (400, 413,
415, 422) give that text up; all else is tried again with growing pauses. Redirects are not followed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.bridge.chat import Address, ChatError, Limit, Outgoing, RetryLater, Undeliverable
from holdfast.bridge.chat.urls import guarded
from holdfast.errors import BadInput

if TYPE_CHECKING:
    import httpx2

DELIVERY = "Holdfast-Delivery"
TIMESTAMP = "Holdfast-Timestamp"
SIGNATURE = "Holdfast-Signature"
SHORTEST_SECRET = 16
TIMEOUT_S = 20.0
LONGEST = 200_000
GIVEN_UP = (400, 413, 415, 422)
PAUSES = (429, 503)
DEFAULT_PAUSE_S = 5.0
LONGEST_PAUSE_S = 3600.0


class SignedWebhook:
    name = "webhook"
    longest = LONGEST

    def __init__(
        self, url: str, secret: str, *, timeout_s: float = TIMEOUT_S, clock: Callable[[], float] = time.time
    ) -> None:
        if len(secret.strip()) < SHORTEST_SECRET:
            raise BadInput("HOLDFAST_WEBHOOK_SECRET", f"must have at least {SHORTEST_SECRET} characters")
        self._url = guarded("HOLDFAST_WEBHOOK_URL", url)
        self.account = self._url
        self._secret = secret
        self._timeout = timeout_s
        self._clock = clock
        self._client: httpx2.AsyncClient | None = None

    def reaches(self, address: Address) -> bool:
        return True

    def place(self, address: Address) -> str:
        return address.target

    def limits(self, address: Address) -> Sequence[Limit]:
        return ()

    async def send(self, address: Address, text: Outgoing) -> str:
        import httpx2

        body = _body(address, text)
        now = str(int(self._clock()))
        headers = {
            "Content-Type": "application/json",
            DELIVERY: text.key,
            TIMESTAMP: now,
            SIGNATURE: signature(self._secret, now, body),
        }
        if self._client is None:
            self._client = httpx2.AsyncClient(timeout=self._timeout, follow_redirects=False)
        try:
            answer = await self._client.post(self._url, content=body, headers=headers)
        except httpx2.HTTPError as error:
            # The address may contain a secret of the receiver, and the error's text may contain the address.
            never_left = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
            said = f"The webhook did not answer ({type(error).__name__})."
            raise ChatError(said, uncertain=not never_left) from None
        _judge(answer.status_code, answer.headers.get("Retry-After"))
        return text.key

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def signature(secret: str, timestamp: str, body: bytes) -> str:
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"sha256={digest}"


def genuine(secret: str, timestamp: str, body: bytes, signed: str) -> bool:
    """Verify a signature, for receivers, who must refuse old timestamps themselves."""
    return hmac.compare_digest(signature(secret, timestamp, body).encode(), signed.encode("utf-8", "surrogateescape"))


def _body(address: Address, text: Outgoing) -> bytes:
    content: dict[str, Any] = {
        "id": text.key,
        "target": address.target,
        "text": text.text,
        "urgent": text.urgent,
        "chat": address.chat.id if address.chat else None,
        "reply_to": text.reply_to,
        "status": text.status.value if text.status else None,
        "actions": [{"label": button.label, "action": button.action} for button in text.buttons] or None,
    }
    return json.dumps({name: value for name, value in content.items() if value is not None}).encode()


def _judge(status: int, retry_after: str | None) -> None:
    if 200 <= status < 300:
        return
    if status in PAUSES:
        stated = retry_after is not None and retry_after.isascii() and retry_after.isdigit()
        raise RetryLater(min(float(retry_after or 0), LONGEST_PAUSE_S) if stated else DEFAULT_PAUSE_S)
    if status in GIVEN_UP:
        raise Undeliverable(f"The webhook refused it ({status}).")
    raise ChatError(f"The webhook answered {status}.", recovery="Check HOLDFAST_WEBHOOK_URL.", uncertain=status >= 500)
