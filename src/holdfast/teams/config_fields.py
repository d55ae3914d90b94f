"""What a value in teams.json may be: each reader returns the value, or refuses it with the step that repairs it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from holdfast.agents.registry import runnable
from holdfast.teams.team import Chat
from holdfast.text.terminal import plain

MAX_ENV = 100
MAX_ENV_VALUE = 32_768
MAX_TOOLS = 200
MAX_USERS = 200
MAX_PATH = 4096
RESERVED_ENV = "HOLDFAST_"

Choice = TypeVar("Choice", bound=StrEnum)
Reader = Callable[[Any], Any]


class Refused(Exception):
    """A value that cannot be used."""

    def __init__(self, problem: str, repair: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.repair = repair


def shown(text: str, most: int = 80) -> str:
    """Return `text` for a terminal: clipped, with control characters escaped."""
    clipped = text if len(text) <= most else f"{text[: most - 1]}…"
    return plain(clipped)


def flag(value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise Refused(f"must be true or false, not {_kind(value)}", "Write it without quotes.")
    return value


def whole(least: int, most: int) -> Callable[[Any], int]:
    """A whole number within limits."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            got = "" if isinstance(value, int | float) else f", not {_kind(value)}"
            raise Refused(f"must be a whole number from {least} to {most}{got}", "Correct it, or leave it out.")
        return value

    return read


def text(most: int, *, lines: bool = False) -> Callable[[Any], str]:
    """Text up to a length, without control characters."""

    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise Refused(f"must be text, not {_kind(value)}", "Put it in quotes.")
        if not 1 <= len(value) <= most:
            raise Refused(f"must have 1 to {most} characters and has {len(value)}", "Shorten it, or leave it out.")
        if any(_unfit(char) and not (lines and char in "\n\t") for char in value):
            raise Refused("holds control characters or halves of characters", "Remove them.")
        return value

    return read


def matching(pattern: str, description: str, example: str) -> Callable[[Any], str]:
    """Text of a given form."""
    form = re.compile(pattern)
    plain = text(MAX_PATH)

    def read(value: Any) -> str:
        if not form.fullmatch(plain(value)):
            raise Refused(f"must be {description}", f'Example: "{example}".')
        return str(value)

    return read


def one_of(*names: str) -> Callable[[Any], str]:
    """One of a few words."""

    def read(value: Any) -> str:
        if value not in names:
            got = f'"{shown(value, 40)}"' if isinstance(value, str) else _kind(value)
            raise Refused(f"must be {_either(names)}, not {got}", "Correct it, or leave it out.")
        return str(value)

    return read


def agent(value: Any) -> str:
    """One of the agents that Holdfast can run."""
    return one_of(*runnable())(value)


def choice(kind: type[Choice]) -> Callable[[Any], Choice]:
    """One of an enumeration's words."""
    read = one_of(*(member.value for member in kind))
    return lambda value: kind(read(value))


def dollars(value: Any) -> float:
    """A positive amount of money."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1e6 or math.isnan(value):
        raise Refused("must be a number above 0, up to 1000000", "Leave it out for no limit.")
    return float(value)


def environment(value: Any) -> dict[str, str]:
    """Names and texts for an agent's environment."""
    if not isinstance(value, dict):
        raise Refused(f"must be an object of names and texts, not {_kind(value)}", 'Example: {"NODE_ENV": "test"}.')
    if len(value) > MAX_ENV:
        raise Refused(f"holds {len(value)} names; the limit is {MAX_ENV}", "Put the others in a file of the project.")
    for name, content in value.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,255}", name):
            raise Refused(f'"{shown(name, 40)}" is no name of an environment variable', "Use letters, digits and _.")
        if name.startswith(RESERVED_ENV):
            raise Refused(f"{shown(name, 40)} belongs to Holdfast", f"Remove it; {RESERVED_ENV}… cannot be set here.")
        if not isinstance(content, str):
            raise Refused(f"{shown(name, 40)} must be text, not {_kind(content)}", "Put its value in quotes.")
        # Errors never quote a value: it may be a token.
        if len(content) > MAX_ENV_VALUE or any(char == "\0" or _is_half(char) for char in content):
            raise Refused(
                f"{shown(name, 40)} is longer than {MAX_ENV_VALUE} characters or holds some that no variable can have",
                "Correct its value.",
            )
    return dict(value)


def tools(value: Any) -> tuple[str, ...]:
    """Names of tools, as the agent calls them."""
    # A name that began with a dash would be an option on the agent's command line.
    read = matching(r"[A-Za-z].{0,499}", "the name of a tool, up to 500 characters", "Bash(git status)")
    return tuple(_each(value, MAX_TOOLS, read, '["Read", "Bash(git status)"]'))


def roots(value: Any) -> tuple[Path, ...]:
    """Directories that projects must be in."""
    found = tuple(_each(value, MAX_TOOLS, absolute, '["/home/me/projects"]'))
    if not found:
        raise Refused("allows no directory at all", "Name a directory, or leave it out to allow every one.")
    return found


def absolute(value: Any) -> Path:
    """An absolute path."""
    path = text(MAX_PATH)(value)
    if not path.startswith("/"):
        raise Refused(f'must be an absolute path, not "{shown(path)}"', "Write it in full, from the first /.")
    return Path(path)


def file_path(value: Any) -> Path:
    """A path that may begin at the home directory (~/) or, when relative, at the project."""
    return from_home(text(MAX_PATH)(value))


def from_home(path: str) -> Path:
    """`path` with a leading ~ replaced by the home directory."""
    if path == "~" or path.startswith("~/"):
        return Path.home() / path[2:]
    return Path(path)


def chat(value: Any) -> Chat:
    """Where people talk with a team: {"id", "topic", "allowedUsers"}."""
    example = 'Example: {"id": -1001234567890, "topic": 7, "allowedUsers": [12345]}.'
    if not isinstance(value, dict) or "id" not in value:
        raise Refused("must be an object with an id", example)
    # Unlike an unknown key of a team this one is refused: a misspelt allowedUsers would change who may give orders.
    if strange := sorted(set(value) - {"id", "topic", "allowedUsers"}):
        raise Refused(f'has no "{shown(strange[0], 40)}"', example)
    number = value["id"]
    place = str(number) if isinstance(number, int) and not isinstance(number, bool) else number
    try:
        return Chat(
            id=matching(r"-?[0-9]{1,20}|@[A-Za-z0-9_]{1,64}", "a number, or a name with @", "-1001234567890")(place),
            topic=None if value.get("topic") is None else whole(1, 2**31)(value["topic"]),
            allowed_users=tuple(_each(value.get("allowedUsers") or [], MAX_USERS, whole(1, 2**53), "[12345]")),
        )
    except Refused as refused:
        raise Refused(f"its id, topic or allowedUsers {refused.problem}", example) from refused


def _each(value: Any, most: int, read: Callable[[Any], Any], example: str) -> list[Any]:
    if not isinstance(value, list):
        raise Refused(f"must be a list, not {_kind(value)}", f"Example: {example}.")
    if len(value) > most:
        raise Refused(f"holds {len(value)} entries; the limit is {most}", "Remove some.")
    found = []
    for number, entry in enumerate(value, 1):
        try:
            found.append(read(entry))
        except Refused as refused:
            raise Refused(f"entry {number} {refused.problem}", refused.repair) from refused
    return found


def _kind(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", type(None): "null"}
    return names.get(type(value), "an object")


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(f'"{name}"' for name in names)


def _unfit(char: str) -> bool:
    return ord(char) < 32 or 127 <= ord(char) < 160 or _is_half(char)


def _is_half(char: str) -> bool:
    """Return whether it is a lone surrogate, which JSON can spell but no file name or terminal can hold."""
    return "\ud800" <= char <= "\udfff"
