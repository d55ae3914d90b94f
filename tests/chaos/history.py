"""What clients did and what they were told: the only thing the checker believes besides the store."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any


class Outcome(StrEnum):
    """What a client knows of an operation."""

    OK = "ok"
    """It was acknowledged."""
    REFUSED = "refused"
    """It was told that it had no effect."""
    UNKNOWN = "unknown"
    """It had no answer, or one that leaves open whether it had an effect."""
    UNANSWERED = "unanswered"
    """It had no answer although its relay was there all the time and the fault was over."""


@dataclass(slots=True)
class Op:
    """One call of one client."""

    number: int
    client: str
    kind: str
    arguments: dict[str, Any]
    mark: str
    """What its effect is recognised by: no other operation has it."""
    invoked: float
    completed: float | None = None
    outcome: Outcome = Outcome.UNKNOWN
    reply: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether it was acknowledged."""
        return self.outcome is Outcome.OK

    @property
    def in_doubt(self) -> bool:
        """Whether it may have had an effect or not."""
        return self.outcome in (Outcome.UNKNOWN, Outcome.UNANSWERED)

    @property
    def end(self) -> float:
        """When it was over; an operation without an answer may take effect at any later time."""
        return float("inf") if self.completed is None or self.in_doubt else self.completed

    def before(self, other: Op) -> bool:
        """Whether it was over before the other began."""
        return self.end < other.invoked

    def line(self, since: float = 0.0) -> str:
        """The operation as a line of an excerpt."""
        ended = "   …   " if self.completed is None else f"{self.completed - since:7.3f}"
        told = self.error or json.dumps(self.reply, ensure_ascii=False)
        given = " ".join(f"{name}={str(value)[:60]!r}" for name, value in self.arguments.items())
        return (
            f"{self.invoked - since:7.3f}-{ended} {self.client:9} {self.kind:11} {self.mark:14} {given}"
            f" -> {self.outcome.value}: {told[:180]}"
        )


class History:
    """Every operation, in the order in which they were begun."""

    def __init__(self, file: Path | None = None) -> None:
        self._ops: list[Op] = []
        self._lock = threading.Lock()
        self._file = file.open("a", encoding="utf-8") if file is not None else None
        self.notes: list[tuple[float, str]] = []
        """What the nemesis did, and when."""

    def invoke(self, client: str, kind: str, mark: str, arguments: dict[str, Any]) -> Op:
        """Write down that an operation begins."""
        with self._lock:
            op = Op(len(self._ops), client, kind, arguments, mark, time.monotonic())
            self._ops.append(op)
        return op

    def complete(self, op: Op, outcome: Outcome, reply: dict[str, Any] | None = None, error: str = "") -> Op:
        """Write down what the client was told."""
        with self._lock:
            op.completed, op.outcome, op.reply, op.error = time.monotonic(), outcome, reply or {}, error
            if self._file is not None:
                self._file.write(json.dumps(asdict(op), ensure_ascii=False, default=str) + "\n")
        return op

    def note(self, text: str) -> None:
        """Write down what the nemesis did."""
        with self._lock:
            self.notes.append((time.monotonic(), text))
            if self._file is not None:
                self._file.write(json.dumps({"nemesis": text, "at": self.notes[-1][0]}) + "\n")

    def add(self, op: Op) -> Op:
        """Take in an operation that is complete, as tests of the checker write them."""
        with self._lock:
            self._ops.append(op)
        return op

    def close(self) -> None:
        """Write out what is left."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def __iter__(self) -> Iterator[Op]:
        return iter(list(self._ops))

    def __len__(self) -> int:
        return len(self._ops)

    def of(self, *kinds: str) -> list[Op]:
        """The operations of some kinds."""
        return [op for op in self if op.kind in kinds]

    def count(self, *outcomes: Outcome) -> int:
        """How many ended so."""
        return sum(op.outcome in outcomes for op in self)
