"""The file teams.json in the data directory: read again when it changes, edited without losing what others wrote."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.agents.registry import DEFAULT
from holdfast.errors import BadInput, Busy, Conflict, HoldfastError, NotFound
from holdfast.files import NotRegular, TooLarge, read_bounded, write_private
from holdfast.process.home_lock import make_home
from holdfast.teams.config import (
    FILE_NAME,
    MAX_BYTES,
    NOT_CONFIRMED,
    Fault,
    Members,
    TeamsConfig,
    read_config,
    read_document,
    repeated_key,
    too_large,
)
from holdfast.teams.config_fields import Refused, shown
from holdfast.teams.confirmation import FILE_NAME as CONFIRMED
from holdfast.teams.confirmation import Confirmations, read_confirmations, rights_of_settings, write_confirmations
from holdfast.teams.project_paths import check_allowed
from holdfast.teams.team import Team, TeamSettings, name_problem

LOCK_SECONDS = 10.0
LOCK_POLL_S = 0.02
SEE_RIGHTS = "`holdfast teams confirm` shows it."
SETTLED_NS = 2_000_000_000
"""How old a change must be before the same time stamp means the same content."""

Stamp = tuple[tuple[int, int, int] | None, ...]
"""Of teams.json, and of its confirmations."""


class TeamsFile:
    """The teams in the teams.json of a data directory."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE_NAME
        self._home = home
        self._stamp: Stamp | None = None
        self.configured = TeamsConfig()
        """The content of teams.json, whether or not its rights are confirmed."""
        self.config = TeamsConfig()
        """What was last read. A file that cannot be read leaves the teams as they were, and adds its fault."""
        self.refresh()

    @property
    def is_current(self) -> bool:
        """Whether the file is unchanged since it was last read."""
        # A fault may have been repaired outside the file, by creating a project's directory for example.
        return self._stamp is not None and self._stamp == self._current_stamp() and not self.config.faults

    def refresh(self) -> bool:
        """Read the file again if it changed; return whether the configuration differs now."""
        if self.is_current:
            return False
        before, stamp = self.config, self._current_stamp()
        try:
            found = read_config(self._read_text(), home=self._home)
        except Refused as refused:
            found = TeamsConfig(faults=(Fault(None, FILE_NAME, refused.problem, refused.repair),), readable=False)
        self._stamp = stamp if stamp is not None and _settled(stamp) else None
        self.configured = found if found.readable else _kept(self.configured, found)
        self.config = _in_force(self.configured, read_confirmations(self._home))
        return self.config != before

    def begin_confirming(self) -> None:
        """Require confirmation of changed rights from now on; rights that exist at the first start take effect."""
        self.refresh()
        if read_confirmations(self._home).begun:
            return
        make_home(self._home)
        with _held(self._home / "teams.lock"):
            self.refresh()
            if self.configured.readable and not read_confirmations(self._home).begun:
                write_confirmations(self._home, self.configured.teams.values(), self.configured.settings)
        self.refresh()

    def waiting(self) -> list[Team]:
        """Return the teams whose rights wait for confirmation, as they are configured."""
        confirmations = read_confirmations(self._home)
        return [team for team in self.configured.teams.values() if confirmations.waiting(team)]

    def waiting_settings(self) -> dict[str, Any]:
        """Return the shared settings that wait for confirmation, as they are configured."""
        settings = self.configured.settings
        waiting = read_confirmations(self._home).waiting_settings(settings)
        return {key: value for key, value in rights_of_settings(settings).items() if key in waiting}

    def confirm(self, teams: Collection[Team], settings: TeamSettings | None = None) -> None:
        """Store that a person confirmed the rights of these teams, and these settings, as given."""
        make_home(self._home)
        with _held(self._home / "teams.lock"):
            known = read_confirmations(self._home)
            if not known.begun:
                return  # everything counts until the first start
            write_confirmations(self._home, teams, settings, known)
        self.refresh()

    def projects(self) -> dict[str, Path]:
        """Return the directory of every team, even if it no longer exists and the team cannot be served."""
        found = {name: team.project for name, team in self.config.teams.items()}
        try:
            entries = read_document(self._read_text()).get("teams")
        except Refused:
            return found
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            named = entry.get("project", entry.get("path")) if isinstance(entry, dict) else None
            if isinstance(named, str) and named.startswith(("/", "~")):
                found.setdefault(name, Path(named).expanduser())
        return found

    def add(
        self,
        name: str,
        project: Path,
        *,
        agent: str | None = None,
        description: str | None = None,
        model: str | None = None,
        skip_permissions: bool = False,
        color: str | None = None,
    ) -> Team:
        """Add a team to the file. Adding the same team again changes nothing."""
        if problem := name_problem(name):
            raise BadInput("name", problem)
        options = {
            "agent": None if agent == DEFAULT else agent,
            "description": description,
            "model": model,
            "skipPermissions": skip_permissions or None,
            "color": color,
        }
        entry = {"project": str(project), **{key: value for key, value in options.items() if value is not None}}
        with self._editing() as document:
            teams = document["teams"] = document.get("teams") or {}
            if teams.get(name, entry) != entry:
                raise Conflict(
                    f"There is a team {name} already.",
                    recovery=f"Edit {self.path}, or `holdfast teams remove {name}` first.",
                )
            teams[name] = entry
            return self._planned(document, name)

    def set_chat(self, name: str, chat: dict[str, Any] | None) -> Team:
        """Give a team a chat, or take its chat away; return the team as it is then configured."""
        with self._editing() as document:
            entry = (document.get("teams") or {}).get(name)
            if not isinstance(entry, dict):
                raise NotFound(f"There is no team {shown(name)}.", recovery="`holdfast teams list` shows all.")
            entry.pop("chat", None)
            if chat is not None:
                entry["chat"] = chat
            return self._planned(document, name)

    def _planned(self, document: Members, name: str) -> Team:
        """Return a team as an edited document configures it; a fault raises, so that the document is not written."""
        planned = read_config(_written(document), home=self._home)
        for fault in planned.faults:
            if (fault.team == name and not fault.warning) or not planned.readable:
                raise BadInput(fault.field, fault.problem, recovery=fault.repair)
        return planned.teams[name]

    def remove(self, name: str) -> None:
        """Remove a team from the file; its conversations stay stored."""
        with self._editing() as document:
            teams = document.get("teams") or {}
            if name not in teams:
                from difflib import get_close_matches

                near = get_close_matches(name, teams, n=1)
                recovery = f"Did you mean {shown(near[0])}?" if near else "`holdfast teams list` shows all."
                raise NotFound(f"There is no team {shown(name)}.", recovery=recovery)
            del teams[name]

    @contextlib.contextmanager
    def _editing(self) -> Iterator[Members]:
        """Yield the document for editing; it is written if the block succeeds and changed something."""
        make_home(self._home)
        with _held(self._home / "teams.lock"):
            try:
                document = read_document(self._read_text())
            except Refused as refused:
                raise Conflict(f"{self.path} {refused.problem}.", recovery=refused.repair) from refused
            if (key := repeated_key(document)) is not None:
                raise Conflict(
                    f'{self.path} has "{shown(key)}" more than once in one object, and an edit would lose one of them.',
                    recovery="Keep one by hand.",
                )
            before = json.dumps(document)
            yield document
            if json.dumps(document) != before:
                try:
                    # If it is a link, its target is replaced, not the link.
                    write_private(Path(os.path.realpath(self.path)), _written(document))
                except OSError as error:
                    raise HoldfastError(
                        f"{self.path} cannot be written ({error.strerror}).",
                        recovery="Make room or correct its permissions, then do it again.",
                    ) from error
        self.refresh()

    def _current_stamp(self) -> Stamp | None:
        stamps = [_stamp_of(path) for path in (self.path, self._home / CONFIRMED)]
        return None if stamps[0] is None else tuple(stamps)

    def _read_text(self) -> str:
        """Return the file's text; that of an empty configuration if there is none."""
        try:
            content = read_bounded(self.path, MAX_BYTES)
        except FileNotFoundError:
            return "{}"
        except NotRegular:
            raise Refused("is not a file", "Put a file in its place.") from None
        except TooLarge:
            raise too_large() from None
        except OSError as error:
            raise Refused(f"cannot be read ({error.strerror})", "Correct its permissions.") from error
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise Refused(f"is not UTF-8 (byte {error.start})", "Save it as UTF-8.") from error


def _written(document: Members) -> str:
    text = json.dumps(document, indent=2, ensure_ascii=False)
    if any("\ud800" <= char <= "\udfff" for char in text):
        text = json.dumps(document, indent=2)
    return f"{text}\n"


def _kept(before: TeamsConfig, unreadable: TeamsConfig) -> TeamsConfig:
    stays = " Until then the teams stay as they were." if before.teams else ""
    faults = tuple(replace(fault, repair=fault.repair + stays) for fault in unreadable.faults)
    return replace(before, faults=faults, readable=False)


def _in_force(configured: TeamsConfig, confirmations: Confirmations) -> TeamsConfig:
    """Return the configuration with the rights in effect; those that wait for confirmation become faults."""
    waiting = [name for name, team in configured.teams.items() if confirmations.waiting(team)]
    settings = confirmations.waiting_settings(configured.settings)
    if not waiting and not settings:
        return configured
    faults = [Fault(name, "rights", NOT_CONFIRMED, SEE_RIGHTS, warning=True) for name in waiting]
    faults += [Fault(None, f"settings.{key}", NOT_CONFIRMED, SEE_RIGHTS, warning=True) for key in settings]
    in_force = confirmations.settings_in_force(configured.settings)
    teams = {}
    for name, team in configured.teams.items():
        try:
            check_allowed(team.project, in_force.allowed_roots)  # the roots that the file names were checked already
        except Refused as refused:
            faults.append(Fault(name, "project", refused.problem, SEE_RIGHTS))
            continue
        teams[name] = confirmations.in_force(team)
    return replace(configured, settings=in_force, teams=teams, faults=(*configured.faults, *faults))


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _settled(stamp: Stamp) -> bool:
    """Return whether a later change is sure to get a later mtime; file systems have ticks of up to two seconds."""
    return all(one is None or time.time_ns() - one[0] > SETTLED_NS for one in stamp)


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold the lock for editing a data directory's teams.json."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Busy(f"Somebody else is editing {FILE_NAME}.", recovery="Try again.") from None
                time.sleep(LOCK_POLL_S)
        yield
    finally:
        os.close(descriptor)
