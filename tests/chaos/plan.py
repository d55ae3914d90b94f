"""The plan of an episode: what each client means to do and what the nemesis does, a pure function of the seed."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from typing import Any

TARGETS = ("desk-a", "desk-b")
TEAMS = ("oracle-a", "oracle-b")
THREADS = ("main", "side")
INTENTS = 400
"""More than a client gets done in an episode."""


@dataclass(frozen=True, slots=True)
class Intent:
    """Something that a client means to do; what it comes to depends on what the client finds."""

    kind: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Role:
    """A client: where it sits, how it speaks, how often it does what."""

    name: str
    project: str
    era: str
    weights: dict[str, int]


ROLES = (
    Role(
        "thinker", "alpha", "legacy", {"think": 10, "branch": 2, "join": 2, "new_session": 2, "recall": 2, "notify": 1}
    ),
    Role("writer", "alpha", "modern", {"think": 5, "send": 8, "send_again": 3, "pull": 2, "recall": 1}),
    Role("taker-one", "beta", "modern", {"serve": 10, "intrude": 2, "task": 2, "pull": 1, "think": 1}),
    Role("taker-two", "beta", "legacy", {"serve": 10, "intrude": 1, "task": 2, "send": 2}),
    Role("runner", "gamma", "legacy", {"run": 1}),
    Role("asker", "delta", "modern", {"ask": 6, "ask_later": 3, "notify": 4, "think": 2, "new_session": 1}),
    Role("rest", "delta", "rest", {"rest_send": 6, "rest_read": 2}),
)


@dataclass(frozen=True, slots=True)
class Strike:
    """One act of the nemesis: how long after the clients got on again, and with which chance."""

    pause: float
    chance: int
    """A seed for whatever the fault has to choose."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is decided before an episode begins."""

    seed: int
    engine: str
    fault: str
    seconds: float
    clients: dict[str, list[Intent]]
    strikes: list[Strike]
    rest: float
    """How long clients go on after the last strike."""

    def as_json(self) -> dict[str, Any]:
        """The plan as it is written down."""
        return asdict(self)


def make_plan(seed: int, engine: str, fault: str, seconds: float, strikes: int) -> Plan:
    """The plan of one fault on one engine; nothing else decides it."""
    chance = random.Random(f"{seed}/{engine}/{fault}")
    clients = {role.name: [_intent(role, chance) for _ in range(INTENTS)] for role in ROLES}
    share = seconds / (strikes + 1)
    struck = [Strike(2 * share * chance.random(), chance.getrandbits(32)) for _ in range(strikes)]
    return Plan(seed, engine, fault, seconds, clients, struck, share)


def _intent(role: Role, chance: random.Random) -> Intent:
    kind = chance.choices(list(role.weights), list(role.weights.values()))[0]
    return Intent(kind, {name: value for name, value in _arguments(kind, chance).items() if value is not None})


def _arguments(kind: str, chance: random.Random) -> dict[str, Any]:
    match kind:
        case "think" | "branch" | "join":
            return {"size": chance.choices((40, 200, 6_000, 50_000), (30, 10, 8, 1))[0], "pick": chance.random()}
        case "send" | "send_again" | "rest_send":
            priority = chance.choices(("normal", "urgent", "stop"), (8, 2, 1))[0]
            named = kind != "send" or chance.random() < 0.4
            return {"target": chance.choice(TARGETS), "priority": priority, "named": named}
        case "serve":
            return {
                "target": chance.choice(TARGETS),
                "wait": chance.choice((0, 0, 1)),
                "outcome": chance.choices(("done", "failed", "later"), (6, 1, 2))[0],
                "retake": chance.random() < 0.2,
                "task": chance.random() < 0.2,
            }
        case "intrude":
            return {"pick": chance.random(), "outcome": chance.choice(("done", "failed", "later"))}
        case "task" | "pull":
            return {"target": chance.choice(TARGETS)}
        case "ask" | "ask_later":
            slow = chance.random() < 0.3
            return {"team": chance.choice(TEAMS), "thread": chance.choice(THREADS), "sleep": 0.2 if slow else None}
        case "notify":
            return {"team": chance.choice(TEAMS)}
    return {}
