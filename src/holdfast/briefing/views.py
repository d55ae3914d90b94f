"""Briefings as JSON, for routes and commands."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

from holdfast.agents.registry import DEFAULT, resume_command_of, transcripts_of
from holdfast.briefing.all_projects import UnfinishedWork
from holdfast.briefing.model import tokens
from holdfast.briefing.past_wording import left_open
from holdfast.briefing.predecessors import Predecessor
from holdfast.briefing.service import Briefing
from holdfast.identity.project import path_of
from holdfast.redaction import masked
from holdfast.text import one_line
from holdfast.times import iso

MAX_REQUEST = 200


def briefing_view(briefing: Briefing) -> dict[str, Any]:
    """Return a briefing's text and parts, without members that are empty."""
    items = ({"kind": item.kind, "text": item.text, "more": item.more} for item in briefing.items)
    return {
        "project": briefing.project,
        "occasion": briefing.occasion.value,
        **({"recovered": briefing.recovered} if briefing.recovered else {}),
        "tokens": tokens(briefing.text),
        "items": [{name: value for name, value in item.items() if value is not None} for item in items],
        "text": briefing.text,
    }


def unfinished_view(found: UnfinishedWork, config: Path) -> dict[str, Any]:
    """Return unfinished work; `config` is the agent's configuration directory in which to continue it."""
    return {
        "work": [_work(one, config) for one in found.work],
        "looked_at": {"projects": found.projects, "sessions": found.sessions},
        "more": found.more,
        "gone": found.gone,
        "left_out": found.left_out,
    }


def _work(one: Predecessor, config: Path) -> dict[str, Any]:
    project = path_of(one.root)
    directory = one.ledger.cwd or str(project or one.root)
    return {
        "project": str(project or one.root),
        "agent": DEFAULT,
        "session": one.session_id,
        "asked": one_line(masked(one.ledger.latest_request or ""), MAX_REQUEST),
        "left": left_open(one),
        "cut_off": one.cut_off,
        "last_at": iso(one.ledger.last_at),
        "directory": directory,
        "resume": _resume(one, config),
        "resumable": one.resumable,
    }


def _resume(one: Predecessor, config: Path) -> list[str]:
    """Return the command that continues a session, as a program and its arguments."""
    its = transcripts_of().config_of(Path(one.transcript))
    is_usual = its is None or os.path.realpath(its) == os.path.realpath(config)
    words = shlex.split(resume_command_of()(one.session_id, config=None if is_usual else its))
    return ["env", *words] if "=" in words[0] else words
