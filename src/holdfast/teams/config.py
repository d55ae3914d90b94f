"""teams.json as text: which teams it configures, and every fault in it with the step that repairs it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from holdfast.config import HOUR_MS
from holdfast.lazy_dataclass import dataclass
from holdfast.teams import config_fields
from holdfast.teams.config_fields import Reader, Refused, shown
from holdfast.teams.project_paths import check_allowed, check_project
from holdfast.teams.team import Delivery, Policy, Team, TeamSettings, name_problem

FILE_NAME = "teams.json"
MAX_BYTES = 1024 * 1024
MAX_NESTING = 16
MAX_TEAMS = 1000
MAX_SUGGESTIONS = 10
"""For how many unknown keys of one object the nearest known one is looked up; the search is slow."""

SETTINGS: Mapping[str, tuple[str, Reader]] = {
    "idleTimeout": ("idle_timeout_ms", config_fields.whole(100, 168 * HOUR_MS)),
    "maxProcesses": ("max_processes", config_fields.whole(1, 256)),
    "healthCheckInterval": ("health_check_interval_ms", config_fields.whole(100, HOUR_MS)),
    "stallTimeout": ("stall_timeout_ms", config_fields.whole(100, 24 * HOUR_MS)),
    "compactAfterMessages": ("compact_after_messages", config_fields.whole(2, 1_000_000)),
    "archiveAfterDays": ("archive_after_days", config_fields.whole(1, 36_500)),
    "warmUp": ("warm_up", config_fields.whole(0, 256)),
    "allowedRoots": ("allowed_roots", config_fields.roots),
    "maxDepth": ("max_depth", config_fields.whole(1, 32)),
}
TEAM_FIELDS: Mapping[str, tuple[str, Reader]] = {
    "description": ("description", config_fields.text(2000, lines=True)),
    "skipPermissions": ("skip_permissions", config_fields.flag),
    "color": ("color", config_fields.matching(r"#[0-9A-Fa-f]{6}", "a color as #RRGGBB", "#E91E63")),
    "agent": ("agent", config_fields.agent),
    "model": (
        "model",
        config_fields.matching(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,127}", "the name of a model", "opus"),
    ),
    "env": ("env", config_fields.environment),
    "allowedTools": ("allowed_tools", config_fields.tools),
    "disallowedTools": ("disallowed_tools", config_fields.tools),
    "policy": ("policy", config_fields.choice(Policy)),
    "machine": ("machine", config_fields.text(128)),
    "maxCostUsdPerDay": ("max_cost_usd_per_day", config_fields.dollars),
    "chat": ("chat", config_fields.chat),
    "sessionFile": ("session_file", config_fields.file_path),
    "stateFile": ("state_file", config_fields.file_path),
    "delivery": ("delivery", config_fields.choice(Delivery)),
    "idleSeconds": ("idle_seconds", config_fields.whole(1, 86_400)),
}
PROJECT_KEYS = ("project", "path")
NOT_CONFIRMED = "was changed and does not count before a person confirms it"
TOP_KEYS = ("settings", "teams", "$schema")


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in teams.json that is not as it should be, and the step that repairs it."""

    team: str | None
    """None when it concerns the file or its settings."""
    field: str
    problem: str
    repair: str
    warning: bool = False
    """Everything is served nevertheless."""

    def __str__(self) -> str:
        where = self.field if self.team is None else f"{shown(self.team)}.{self.field}"
        return f"{where}: {self.problem}. {self.repair}"


@dataclass(frozen=True, slots=True)
class TeamsConfig:
    """The teams that can be served, and what is wrong with the others."""

    settings: TeamSettings = field(default_factory=TeamSettings)
    teams: Mapping[str, Team] = field(default_factory=dict, hash=False)
    faults: tuple[Fault, ...] = ()
    readable: bool = True
    """Whether the file could be read as a whole."""

    @property
    def refused(self) -> tuple[str, ...]:
        """The names of the teams that cannot be served."""
        return tuple(dict.fromkeys(fault.team for fault in self.faults if fault.team is not None and not fault.warning))

    @property
    def unconfirmed(self) -> tuple[Fault, ...]:
        """The changes that wait for a person's confirmation."""
        return tuple(fault for fault in self.faults if fault.problem == NOT_CONFIRMED)

    @property
    def errors(self) -> tuple[Fault, ...]:
        """The faults that keep something from being served as configured."""
        return tuple(fault for fault in self.faults if not fault.warning)


class Members(dict[str, Any]):
    """A JSON object that remembers which of its keys were given more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        times = Counter(key for key, _ in pairs) if len(self) < len(pairs) else {}
        self.repeated = {key for key, count in times.items() if count > 1}


def repeated_key(document: Members) -> str | None:
    """Return a key that an object anywhere in `document` has twice; rewriting the file would lose one of the two."""
    return next(
        (min(part.repeated) for part, _ in _parts(document) if isinstance(part, Members) and part.repeated), None
    )


def _parts(document: Members) -> Iterator[tuple[Any, int]]:
    """Yield every value in a document with its depth; not recursive, because a hostile file could exhaust the stack."""
    waiting: list[tuple[Any, int]] = [(document, 0)]
    while waiting:
        value, depth = waiting.pop()
        yield value, depth
        inner = value.values() if isinstance(value, Members) else value if isinstance(value, list) else ()
        waiting += [(part, depth + 1) for part in inner]


def read_document(text: str) -> Members:
    """Return the JSON object in `text`; raises Refused if it cannot be a teams.json at all."""
    if len(text) > MAX_BYTES or len(text.encode(errors="replace")) > MAX_BYTES:
        raise too_large()
    try:
        document = json.loads(
            text.removeprefix("\ufeff"), object_pairs_hook=Members, parse_constant=_no_constant, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        repair = "Correct it there."
        if error.doc[error.pos : error.pos + 2] in ("//", "/*"):
            repair = "JSON knows no comments: remove it."
        where = f"line {error.lineno}, column {error.colno}"
        raise Refused(f"is not JSON ({error.msg} in {where})", repair) from error
    except RecursionError:
        raise Refused("is nested too deeply", f"{MAX_NESTING} levels are the limit.") from None
    except ValueError as error:
        raise Refused(f"holds a number that cannot be used ({shown(str(error))})", "Correct it.") from error
    if not isinstance(document, Members):
        raise Refused("must be a JSON object", 'Write {"teams": {}}.')
    if any(depth > MAX_NESTING for _, depth in _parts(document)):
        raise Refused("is nested too deeply", f"{MAX_NESTING} levels are the limit.")
    for key in ("settings", "teams"):
        if key in document.repeated:
            raise Refused(f'has "{key}" more than once', "Put all of it into one.")
        if not isinstance(document.get(key), Members | None):
            raise Refused(f'must have an object as "{key}"', f'Write "{key}": {{…}}.')
    if len(document.get("teams") or ()) > MAX_TEAMS:
        raise Refused(f"has more than {MAX_TEAMS} teams", "Remove teams that are no longer used.")
    return document


def too_large() -> Refused:
    """Return the refusal of a file over the limit."""
    return Refused(f"is larger than {MAX_BYTES} bytes", "Remove teams that are no longer used.")


def read_config(text: str, *, home: Path) -> TeamsConfig:
    """Return the teams that `text` configures. A fault disables the team that has it and no other."""
    try:
        document = read_document(text)
    except Refused as refused:
        return TeamsConfig(faults=(Fault(None, FILE_NAME, refused.problem, refused.repair),), readable=False)
    faults = list(_unknown(None, "", document, TOP_KEYS))
    values, setting_faults = _read(None, "settings.", document.get("settings") or Members([]), SETTINGS)
    faults += setting_faults
    # A mistake in the restriction must not lift it.
    roots_known = not any(fault.field == "settings.allowedRoots" and not fault.warning for fault in faults)
    settings = TeamSettings(**values)
    here = _machine_id(home)
    teams: dict[str, Team] = {}
    entries: Members = document.get("teams") or Members([])
    for name, entry in entries.items():
        team, team_faults = _read_team(name, entry, settings, here)
        if name in entries.repeated:
            team_faults.append(Fault(name, "name", "is there more than once", "Keep one of the two."))
        if not roots_known:
            team_faults.append(
                Fault(name, "project", "cannot be checked", "Correct settings.allowedRoots; until then none is served.")
            )
        if team is not None and all(fault.warning for fault in team_faults):
            teams[name] = team
        faults += team_faults
    return TeamsConfig(settings, teams, tuple(faults))


def _read_team(name: str, entry: Any, settings: TeamSettings, here: str | None) -> tuple[Team | None, list[Fault]]:
    faults: list[Fault] = []
    if problem := name_problem(name):
        faults.append(Fault(name, "name", problem, "Give it another name."))
    if not isinstance(entry, Members):
        faults.append(Fault(name, "entry", "must be an object", 'Write {"project": "/absolute/path"}.'))
        return None, faults
    values, value_faults = _read(name, "", entry, TEAM_FIELDS, PROJECT_KEYS)
    faults += value_faults
    try:
        project = config_fields.absolute(_configured_project(name, entry, faults))
        check_allowed(project, settings.allowed_roots)
        # Where another machine runs the team, its project need not be here.
        if values.get("machine") in (None, here):
            check_project(project)
    except Refused as refused:
        faults.append(Fault(name, "project", refused.problem, refused.repair))
        return None, faults
    for key in ("session_file", "state_file"):
        if key in values:
            values[key] = project / values[key]
    return Team(name=name, project=project, **values), faults


def _configured_project(name: str, entry: Members, faults: list[Fault]) -> Any:
    project, path = entry.get("project"), entry.get("path")
    if project is None and path is None:
        raise Refused("is missing", 'Add "project": "/absolute/path".')
    if project is None:
        faults.append(Fault(name, "path", "is deprecated", 'Rename it to "project".', warning=True))
        return path
    if path is not None and path != project:
        faults.append(Fault(name, "path", "differs from project, which counts", 'Remove "path".', warning=True))
    return project


def _read(
    team: str | None,
    prefix: str,
    entry: Members,
    table: Mapping[str, tuple[str, Reader]],
    also_known: tuple[str, ...] = (),
) -> tuple[dict[str, Any], list[Fault]]:
    """Return the values of `entry` by attribute; null means absent."""
    values: dict[str, Any] = {}
    faults = list(_unknown(team, prefix, entry, (*table, *also_known)))
    for key in sorted(entry.repeated):
        faults.append(Fault(team, f"{prefix}{shown(key)}", "is there more than once", "Keep one of the two."))
    for key, (attribute, read) in table.items():
        value = entry.get(key)
        if value is None:
            continue
        try:
            if isinstance(value, Members) and value.repeated:
                raise Refused("has a key more than once", "Keep one of the two.")
            values[attribute] = read(value)
        except Refused as refused:
            faults.append(Fault(team, prefix + key, refused.problem, refused.repair))
    return values, faults


def _unknown(team: str | None, prefix: str, entry: Members, known: tuple[str, ...]) -> Iterator[Fault]:
    unknown = [key for key in entry if key not in known]
    if not unknown:
        return
    from difflib import get_close_matches  # few files have such a fault, and every hook waits for the daemon to start

    lowered = {name.lower(): name for name in known}
    for number, key in enumerate(unknown):
        near = get_close_matches(key[:64].lower(), lowered, n=1) if number < MAX_SUGGESTIONS else []
        repair = f'Did you mean "{lowered[near[0]]}"?' if near else "Remove it."
        yield Fault(team, f"{prefix}{shown(key)}", "is not known and has no effect", repair, warning=True)


def _machine_id(home: Path) -> str | None:
    """Return this machine's id; None if no daemon has run here yet."""
    try:
        return (home / "machine").read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(text)
    return number
