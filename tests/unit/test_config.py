"""Settings come from arguments, else the environment, else defaults; a bad one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.config import DAY_MS, HOUR_MS, read_settings
from holdfast.errors import BadInput


def test_defaults_suit_one_person_on_one_machine() -> None:
    settings = read_settings({})
    assert (settings.host, settings.port, settings.database_url) == ("127.0.0.1", 8181, None)
    assert settings.home == Path("~/.holdfast").expanduser()
    assert (settings.auto_resume_ms, settings.archive_after_ms) == (2 * HOUR_MS, 90 * DAY_MS)


def test_arguments_win_over_the_environment() -> None:
    env = {"HOLDFAST_HOME": "/a", "HOLDFAST_HOST": "::1", "HOLDFAST_PORT": "1"}
    assert read_settings(env).port == 1
    settings = read_settings(env, home="/b", host="127.0.0.2", port=0)
    assert (settings.home, settings.host, settings.port) == (Path("/b"), "127.0.0.2", 0)


def test_transcripts_are_shared_unless_that_is_switched_off() -> None:
    shared = [read_settings({"HOLDFAST_SHARE_TRANSCRIPTS": text}).share_transcripts for text in ("", "on", "off")]
    assert shared == [True, True, False]


@pytest.mark.parametrize(
    ("text", "ms"), [("0", 0), ("90", 90_000), ("90s", 90_000), ("30m", 1_800_000), ("2h", 2 * HOUR_MS), ("1d", DAY_MS)]
)
def test_durations(text: str, ms: int) -> None:
    assert read_settings({"HOLDFAST_AUTO_RESUME": text}).auto_resume_ms == ms


@pytest.mark.parametrize(
    "env",
    [
        {"HOLDFAST_PORT": "http"},
        {"HOLDFAST_PORT": "65536"},
        {"HOLDFAST_AUTO_RESUME": "soon"},
        {"HOLDFAST_AUTO_RESUME": "h"},
        {"HOLDFAST_ARCHIVE_DAYS": "-1"},
        {"HOLDFAST_KEEP_DAYS": "99999999999999999999"},
        {"HOLDFAST_DATABASE_URL": "mysql://x"},
        {"HOLDFAST_SHARE_TRANSCRIPTS": "no"},
        {"MCP_SESSION_SECRET": "short"},
        {"MCP_SESSION_SECRET": " " * 64},
    ],
)
def test_a_bad_setting_is_named(env: dict[str, str]) -> None:
    with pytest.raises(BadInput, match=next(iter(env))):
        read_settings(env)


@pytest.mark.parametrize("names", ["HOLDFAST_DATABASE_URL", "CI,MCP_SESSION_SECRET", "two words", "A=B"])
def test_a_name_that_cannot_be_passed_on_to_programs_is_refused(names: str) -> None:
    with pytest.raises(BadInput, match="HOLDFAST_PASS_ENV"):
        read_settings({"HOLDFAST_PASS_ENV": names})
