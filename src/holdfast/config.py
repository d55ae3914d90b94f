"""Settings: from the command line, the environment, or defaults that suit one person on one machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from holdfast.errors import BadInput
from holdfast.lazy_dataclass import dataclass
from holdfast.process.child_environment import passed_names

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8181
SHORTEST_SECRET = 32
MAX_MINUTES = 24 * 60
MAX_DAYS = 36_500
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
UNITS_MS = {"s": 1000, "m": 60_000, "h": HOUR_MS, "d": DAY_MS}


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set. Each field names its environment variable."""

    home: Path
    """HOLDFAST_HOME: the data directory."""
    host: str = DEFAULT_HOST
    """HOLDFAST_HOST: where HTTP listens."""
    port: int = DEFAULT_PORT
    """HOLDFAST_PORT: where HTTP listens; 0 takes a free port."""
    database_url: str | None = None
    """HOLDFAST_DATABASE_URL: a postgresql:// URL; without it the embedded store is used."""
    share_transcripts: bool = True
    """HOLDFAST_SHARE_TRANSCRIPTS: on, or off: transcripts of this machine's sessions do not go into PostgreSQL."""
    allowed_hosts: str = ""
    """HOLDFAST_ALLOWED_HOSTS: further host names under which HTTP may be addressed, separated by commas."""
    origins: str = ""
    """HOLDFAST_ORIGINS: the owner's own pages, which may use REST and events by a key: origins, separated by commas."""
    auto_resume_ms: int = 2 * HOUR_MS
    """HOLDFAST_AUTO_RESUME: how fresh a session must be for a thought to continue it by itself (2h, 30m, 0 = never)."""
    archive_after_ms: int = 90 * DAY_MS
    """HOLDFAST_ARCHIVE_DAYS: after how many untouched days a session archives itself."""
    keep_ms: int = 90 * DAY_MS
    """HOLDFAST_KEEP_DAYS: how long messages that were done, and the log of events, are kept; 0 forever."""
    daily_backup: bool = True
    """HOLDFAST_DAILY_BACKUP: on, or off: the embedded store is not backed up by itself."""
    connection_life_ms: int = DAY_MS
    """HOLDFAST_CONNECTION_LIFE: how long after its last activity a connection can be reconnected to (24h)."""
    session_secret: str | None = None
    """MCP_SESSION_SECRET: signs reconnect tokens; without it a key is made once and kept."""
    reconnect_minutes: int = 15
    """MCP_RECONNECT_TOKEN_EXPIRY: how many minutes a reconnect token is good for."""
    test_clock: Path | None = None
    """HOLDFAST_TEST_CLOCK: a file that holds milliseconds to add to the time; for tests of long waits.
    A second number is a leap: it is added to the wall clock only."""
    idle_exit_s: float = 600.0
    """HOLDFAST_IDLE_EXIT: after how long without client and work a daemon that a relay started ends (10m)."""
    telegram_token: str | None = field(default=None, repr=False)
    """HOLDFAST_TELEGRAM_TOKEN: the bot that talks with the owners."""
    telegram_api: str | None = None
    """HOLDFAST_TELEGRAM_API: another Bot API server than Telegram's own."""
    telegram_webhook: str | None = None
    """HOLDFAST_TELEGRAM_WEBHOOK: the public URL to which Telegram brings updates; without it they are polled for."""
    telegram_webhook_secret: str | None = field(default=None, repr=False)
    """HOLDFAST_TELEGRAM_WEBHOOK_SECRET: what Telegram proves itself with there."""
    webhook_url: str | None = None
    """HOLDFAST_WEBHOOK_URL: where updates are posted, signed."""
    webhook_secret: str | None = field(default=None, repr=False)
    """HOLDFAST_WEBHOOK_SECRET: what signs them."""

    @property
    def database(self) -> Path:
        """The embedded store's file."""
        return self.home / "holdfast.db"

    @property
    def key_file(self) -> Path:
        """The key that HTTP clients send."""
        return self.home / "key"


def read_settings(
    env: Mapping[str, str] | None = None,
    *,
    home: str | None = None,
    host: str | None = None,
    port: int | None = None,
) -> Settings:
    """Return the settings in force; arguments win over the environment."""
    env = os.environ if env is None else env
    place = home or env.get("HOLDFAST_HOME") or "~/.holdfast"
    url = env.get("HOLDFAST_DATABASE_URL") or None
    if url is not None and not url.startswith(("postgresql://", "postgres://")):
        raise BadInput(
            "HOLDFAST_DATABASE_URL",
            "must be a postgresql:// URL",
            recovery="Unset it to use the embedded store.",
        )
    passed_names(env)  # refused now, and not when the first program is started
    return Settings(
        home=Path(place).expanduser().absolute(),
        host=host or env.get("HOLDFAST_HOST") or DEFAULT_HOST,
        port=port if port is not None else _port(env.get("HOLDFAST_PORT")),
        database_url=url,
        share_transcripts=_switch("HOLDFAST_SHARE_TRANSCRIPTS", env, default=True),
        allowed_hosts=env.get("HOLDFAST_ALLOWED_HOSTS", ""),
        origins=env.get("HOLDFAST_ORIGINS", ""),
        auto_resume_ms=_duration("HOLDFAST_AUTO_RESUME", env, 2 * HOUR_MS),
        archive_after_ms=_days("HOLDFAST_ARCHIVE_DAYS", env, 90),
        keep_ms=_days("HOLDFAST_KEEP_DAYS", env, 90),
        daily_backup=_switch("HOLDFAST_DAILY_BACKUP", env, default=True),
        connection_life_ms=_duration("HOLDFAST_CONNECTION_LIFE", env, DAY_MS),
        session_secret=_secret(env.get("MCP_SESSION_SECRET")),
        reconnect_minutes=_minutes(_number("MCP_RECONNECT_TOKEN_EXPIRY", env, 15)),
        test_clock=Path(env["HOLDFAST_TEST_CLOCK"]) if env.get("HOLDFAST_TEST_CLOCK") else None,
        idle_exit_s=_duration("HOLDFAST_IDLE_EXIT", env, 600_000) / 1000,
        telegram_token=env.get("HOLDFAST_TELEGRAM_TOKEN") or None,
        telegram_api=env.get("HOLDFAST_TELEGRAM_API") or None,
        telegram_webhook=env.get("HOLDFAST_TELEGRAM_WEBHOOK") or None,
        telegram_webhook_secret=env.get("HOLDFAST_TELEGRAM_WEBHOOK_SECRET") or None,
        webhook_url=env.get("HOLDFAST_WEBHOOK_URL") or None,
        webhook_secret=env.get("HOLDFAST_WEBHOOK_SECRET") or None,
    )


def _port(text: str | None) -> int:
    if not text:
        return DEFAULT_PORT
    if not text.isdigit() or int(text) > 65_535:
        raise BadInput("HOLDFAST_PORT", "must be a number from 0 to 65535")
    return int(text)


def _secret(text: str | None) -> str | None:
    if text and len(text.strip()) < SHORTEST_SECRET:
        raise BadInput("MCP_SESSION_SECRET", f"must have at least {SHORTEST_SECRET} characters")
    return text or None


def _minutes(number: int) -> int:
    if not 1 <= number <= MAX_MINUTES:
        raise BadInput("MCP_RECONNECT_TOKEN_EXPIRY", f"must be 1 to {MAX_MINUTES} minutes")
    return number


def _switch(name: str, env: Mapping[str, str], *, default: bool) -> bool:
    text = env.get(name)
    if not text:
        return default
    if text not in ("on", "off"):
        raise BadInput(name, "must be on or off")
    return text == "on"


def _number(name: str, env: Mapping[str, str], default: int) -> int:
    text = env.get(name)
    if not text:
        return default
    if not text.isdigit():
        raise BadInput(name, "must be a whole number")
    return int(text)


def _days(name: str, env: Mapping[str, str], default: int) -> int:
    """Return a setting in days as milliseconds."""
    number = _number(name, env, default)
    if number > MAX_DAYS:
        raise BadInput(name, f"must be at most {MAX_DAYS} days")
    return number * DAY_MS


def _duration(name: str, env: Mapping[str, str], default: int) -> int:
    """Return a text such as 90s, 30m, 2h, 1d in milliseconds; a bare number is seconds."""
    text = env.get(name)
    if not text:
        return default
    number, unit = (text[:-1], text[-1]) if text[-1] in UNITS_MS else (text, "s")
    if not number.isdigit():
        raise BadInput(name, "must be a duration such as 90s, 30m, 2h or 1d")
    return int(number) * UNITS_MS[unit]
