"""The settings in force as people read them: what each is for, its value, and nothing that is secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from holdfast.config import Settings
from holdfast.lazy_dataclass import dataclass
from holdfast.text import counted

Words = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class InForce:
    """One setting."""

    name: str
    """Its environment variable."""
    meaning: str
    value: str


def settings_in_force(settings: Settings) -> list[InForce]:
    """Return every setting, in the order of the documentation."""
    return [InForce(name, meaning, words(getattr(settings, field))) for field, (name, meaning, words) in LISTED.items()]


def _length(ms: int) -> str:
    """Return a length of time in the largest unit that it is a whole number of."""
    for unit, length in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000)):
        if ms % length == 0:
            return counted(ms // length, unit)
    return counted(round(ms / 1000), "second")


def _text(value: Any) -> str:
    return str(value) if value not in (None, "") else "not set"


def _secret(value: Any) -> str:
    return "set" if value else "not set"


def _switch(value: Any) -> str:
    return "on" if value else "off"


def _milliseconds(value: Any) -> str:
    return _length(value) if value else "never"


def _keep(value: Any) -> str:
    return _length(value) if value else "forever"


def _seconds(value: Any) -> str:
    return _length(round(value * 1000))


def _minutes(value: Any) -> str:
    return _length(value * 60_000)


def _host(value: Any) -> str:
    """Return only where an address leads: the rest of it may be a password or a token."""
    if not value:
        return "not set"
    try:
        parts = urlsplit(value)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "set"
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else "set"


LISTED: Mapping[str, tuple[str, str, Words]] = {
    "home": ("HOLDFAST_HOME", "the data directory", _text),
    "host": ("HOLDFAST_HOST", "where HTTP listens", _text),
    "port": ("HOLDFAST_PORT", "the port; 0 takes a free one", _text),
    "allowed_hosts": ("HOLDFAST_ALLOWED_HOSTS", "additional names of this machine", _text),
    "origins": ("HOLDFAST_ORIGINS", "pages of your own that may call", _text),
    "database_url": ("HOLDFAST_DATABASE_URL", "PostgreSQL instead of the embedded store", _host),
    "share_transcripts": ("HOLDFAST_SHARE_TRANSCRIPTS", "transcripts go into PostgreSQL", _switch),
    "auto_resume_ms": ("HOLDFAST_AUTO_RESUME", "a session this recent is continued automatically", _milliseconds),
    "archive_after_ms": ("HOLDFAST_ARCHIVE_DAYS", "an untouched session is archived after", _milliseconds),
    "keep_ms": ("HOLDFAST_KEEP_DAYS", "messages that were done, and events, are kept for", _keep),
    "daily_backup": ("HOLDFAST_DAILY_BACKUP", "a backup every day", _switch),
    "connection_life_ms": ("HOLDFAST_CONNECTION_LIFE", "a connection can be resumed for", _milliseconds),
    "reconnect_minutes": ("MCP_RECONNECT_TOKEN_EXPIRY", "a reconnect token is valid for", _minutes),
    "session_secret": ("MCP_SESSION_SECRET", "signs reconnect tokens; without it, a key of Holdfast's own", _secret),
    "idle_exit_s": ("HOLDFAST_IDLE_EXIT", "an unused daemon exits after", _seconds),
    "telegram_token": ("HOLDFAST_TELEGRAM_TOKEN", "the bot that talks with you", _secret),
    "telegram_api": ("HOLDFAST_TELEGRAM_API", "another Bot API server", _host),
    "telegram_webhook": ("HOLDFAST_TELEGRAM_WEBHOOK", "where Telegram posts updates; otherwise they are polled", _host),
    "telegram_webhook_secret": ("HOLDFAST_TELEGRAM_WEBHOOK_SECRET", "the secret that Telegram sends along", _secret),
    "webhook_url": ("HOLDFAST_WEBHOOK_URL", "where updates are posted", _host),
    "webhook_secret": ("HOLDFAST_WEBHOOK_SECRET", "what signs them", _secret),
    "test_clock": ("HOLDFAST_TEST_CLOCK", "a clock for tests", _text),
}
"""Each field of Settings: its variable, what it is for, and how its value is shown."""
