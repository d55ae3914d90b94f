"""What the sessions of the recall corpus do: requests, and under each the files and commands of its turn.

The plans are made from fixed seeds, so that every run compares the same work. They differ in what makes a ledger hard:
many files, deep or unusual paths, long requests, many requests, many errors, several compactions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice

NOUNS = (
    "fence",
    "gate",
    "heron",
    "tide",
    "anchor",
    "ledger",
    "beacon",
    "harbour",
    "signal",
    "cable",
    "rudder",
    "lantern",
    "pier",
    "kettle",
    "mast",
    "buoy",
)
VERBS = (
    "Mend",
    "Move",
    "Rename",
    "Simplify",
    "Document",
    "Guard",
    "Split",
    "Merge",
    "Test",
    "Cache",
    "Retry",
    "Validate",
    "Log",
)
ERRORS = (
    "KeyError",
    "ValueError",
    "TypeError",
    "ZeroDivisionError",
    "FileNotFoundError",
    "AttributeError",
    "RuntimeError",
    "ModuleNotFoundError",
    "UnicodeDecodeError",
    "RecursionError",
    "PermissionError",
    "IndexError",
    "NotImplementedError",
    "TimeoutError",
    "OverflowError",
)
LONG = (
    " Keep the public names as they are, since two other services import them. Do not touch the migrations."
    " Every change needs a test that fails without it, and the tests must not sleep. When a value is missing, say which"
    " one and where it should have come from. I would rather have a small change that is right than a large one."
)


@dataclass(frozen=True, slots=True)
class Action:
    """One call of a tool: read, edit or write a file, or run a program that fails."""

    tool: str
    subject: str
    """A path inside the project, or the name of the error."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user asks, and what the agent then does."""

    request: str
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """One session: its turns; the context is compacted after some of them, and after the last."""

    name: str
    turns: tuple[Turn, ...]
    compacts_after: frozenset[int] = field(default_factory=frozenset)
    """Turns, counted from 1, after which it is compacted besides."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How much of everything a session has."""

    name: str
    turns: int = 4
    read: int = 8
    edited: int = 3
    written: int = 1
    errors: int = 2
    long_requests: bool = False
    folders: Sequence[str] = ("src", "src/core", "src/web", "tests")
    suffixes: Sequence[str] = (".py",)
    compacts_after: frozenset[int] = frozenset()


WORKSPACE = ("packages/server/src/handlers", "packages/web/src/components", "packages/shared/lib", "tests/integration")
SHAPES = (
    Shape("few files", turns=3, read=4, edited=1, errors=1),
    Shape("many files", turns=6, read=60, edited=18, written=2, errors=2, folders=WORKSPACE),
    Shape("ordinary", turns=5, read=12, edited=5, written=2, errors=3),
    Shape("long requests", turns=5, read=10, edited=4, errors=2, long_requests=True),
    Shape("many errors", turns=5, read=8, edited=4, errors=14),
    Shape("compacted twice", turns=6, read=16, edited=6, errors=4, compacts_after=frozenset({3})),
    Shape("compacted three times", turns=7, read=21, edited=8, errors=5, compacts_after=frozenset({2, 4})),
    Shape("many requests", turns=15, read=15, edited=6, errors=3),
    Shape(
        "deep paths", read=18, edited=6, folders=("services/billing/src/main/java/org/example/billing", "libs/a/b/c/d")
    ),
    Shape(
        "unusual names", read=14, edited=5, folders=("my docs", "größe/日本", "a-b_c.d"), suffixes=(".md", ".tsx", "")
    ),
    Shape("new files", turns=4, read=4, edited=2, written=25, errors=2),
    Shape("large in all", turns=9, read=42, edited=16, written=6, errors=9, long_requests=True, folders=WORKSPACE),
    Shape("no errors", turns=4, read=14, edited=7, errors=0),
    Shape("reads only", turns=4, read=30, edited=0, written=0, errors=1),
)


def plans(number: int) -> list[Plan]:
    """The first plans of the corpus."""
    return [_plan(shape, seed) for seed, shape in enumerate(SHAPES[:number])]


def _plan(shape: Shape, seed: int) -> Plan:
    chance = random.Random(seed)  # noqa: S311 - the same work in every run
    paths = _paths(shape, chance)
    # A file is edited right after it was read, for a compaction makes the agent read it again; what is written is new.
    work: list[tuple[Action, ...]] = [
        (Action("Read", path), Action("Edit", path)) for path in islice(paths, shape.edited)
    ]
    work += [(Action("Read", path),) for path in islice(paths, shape.read - shape.edited)]
    work += [(Action("Write", path),) for path in islice(paths, shape.written)]
    work += [(Action("Bash", error),) for error in chance.sample(ERRORS, shape.errors)]
    chance.shuffle(work)
    actions = [action for together in work for action in together]
    dealt = _dealt(actions, shape.turns)
    requests = [_request(chance, number, shape) for number in range(shape.turns)]
    turns = tuple(Turn(request, tuple(given)) for request, given in zip(requests, dealt, strict=True))
    return Plan(shape.name, turns, shape.compacts_after)


def _paths(shape: Shape, chance: random.Random) -> Iterator[str]:
    for number in count(1):
        name = f"{chance.choice(NOUNS)}_{number:03}{chance.choice(list(shape.suffixes))}"
        yield f"{chance.choice(list(shape.folders))}/{name}"


def _dealt(actions: Sequence[Action], turns: int) -> list[Sequence[Action]]:
    """The actions in order, spread over the turns; an edit stays with its reading."""
    ends = [len(actions) * (turn + 1) // turns for turn in range(turns)]
    ends = [end + (end < len(actions) and actions[end].tool == "Edit") for end in ends]
    return [actions[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _request(chance: random.Random, number: int, shape: Shape) -> str:
    first, second = chance.sample(NOUNS, 2)
    what = f"`{first}()`" if number % 3 == 1 else f"the {first}"
    verb = chance.choice(VERBS)
    # Among the plain requests some are of the one form that the peer looks for.
    begins = f"From now on, {verb.lower()}" if number % 4 == 3 else verb
    words = f'{begins} {what} so that the "{second}" of step {number + 1} holds.'
    return words + LONG * 2 if shape.long_requests else words
