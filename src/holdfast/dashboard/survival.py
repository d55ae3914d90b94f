"""One break in an agent's work, a kill or a compaction: what it knew, what was lost, what was told, how it went on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from holdfast.briefing.knowledge import Knowledge, KnownFile, KnownStep
from holdfast.briefing.model import Occasion, tokens
from holdfast.briefing.project_sessions import Continued
from holdfast.briefing.queries.breaks import Break
from holdfast.lazy_dataclass import dataclass
from holdfast.text import counted

MOST_CHANGED, MOST_READ, MOST_STEPS, MOST_FAILED = 5, 3, 3, 2
STEPS = {"completed": "done", "in_progress": "under way", "pending": "still to do"}
TASK = frozenset({"request", "first", "requests"})


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing that the agent knew."""

    kind: str
    """request, changed, read, step, failed or conversation."""
    text: str
    told: bool
    """Whether it was carried over."""
    after: str | None = None
    """What became of it: outside text for a request, else in our words."""


@dataclass(frozen=True, slots=True)
class Survival:
    """A break, ready to be drawn and read."""

    kind: str
    """killed, compacted or ended."""
    knew: Knowledge
    told: str
    """The text; what would be told now if nobody goes on yet."""
    tokens: int
    at: int | None
    """When it was told; None if it was not yet."""
    size: int | None
    """Bytes of the conversation that is gone."""
    things: tuple[Thing, ...]
    """What was told first, then what was lost."""
    continued: Continued | None = None

    @property
    def carried(self) -> int:
        """How many of the things shown went on."""
        return sum(one.told for one in self.things)

    @property
    def taken_up(self) -> tuple[Thing, ...]:
        """What the agent went on with."""
        return tuple(one for one in self.things if one.after is not None)

    @property
    def sentence(self) -> str:
        """The picture in words."""
        files = counted(self.knew.changed_in_all, "changed file")
        knew = f"It knew its task, {files} and {counted(self.knew.read_in_all, 'file')} it had only read"
        lost = {"killed": "was killed", "compacted": "was compacted"}.get(self.kind, "ended")
        if self.at is None:
            told = f"the next agent here is told of it in {self.tokens} tokens"
        else:
            told = f"{'it' if self.kind == 'compacted' else 'the next session'} was told of it in {self.tokens} tokens"
        same = sum(one.after is not None and one.kind in ("changed", "read") for one in self.things)
        after = f", and went on with {counted(same, 'file')} of these" if same else ""
        return f"{knew}; then it {lost}; {told}{after}."


def survival(one: Break, continued: Continued | None) -> Survival | None:
    """Return a break as it happened; None if what was known then is no longer kept."""
    if one.knew is None or one.told is None:
        return None
    kind = {Occasion.COMPACT.value: "compacted", Occasion.CRASH.value: "killed"}.get(one.occasion, "ended")
    things = _things(one.knew, one.told, frozenset(one.kinds), continued, one.size)
    return Survival(kind, one.knew, one.told, tokens(one.told), one.at, one.size, things, continued)


def waiting(knew: Knowledge, told: str, kinds: Sequence[str], size: int | None = None) -> Survival:
    """Return the break of a session that was cut off and not continued yet."""
    things = _things(knew, told, frozenset(kinds), None, size)
    return Survival("killed", knew, told, tokens(told), None, size, things)


def _things(
    knew: Knowledge, told: str, kinds: frozenset[str], continued: Continued | None, size: int | None
) -> tuple[Thing, ...]:
    did = continued.did if continued is not None else None
    things = [
        *_request(knew, kinds, did),
        *_files("changed", knew.changed[:MOST_CHANGED], told, did),
        *_steps(knew, kinds, did),
        *_files("read", knew.read[:MOST_READ], told, did),
        *(
            Thing("failed", f"{one.command} ({one.error})", not kinds.isdisjoint({"failed", "errors"}))
            for one in knew.errors[-MOST_FAILED:]
        ),
    ]
    lost = counted(knew.turns, "turn") if knew.turns else "its turns"
    lost += f", {_size(size)} of conversation" if size else " of conversation"
    things.sort(key=lambda one: not one.told)
    return (*things, Thing("conversation", lost, told=False))


def _request(knew: Knowledge, kinds: frozenset[str], did: Knowledge | None) -> Iterator[Thing]:
    if knew.request is None:
        return
    asked = did.request if did is not None and did.request != knew.request else None
    yield Thing("request", knew.request, not kinds.isdisjoint(TASK), asked or (did and did.words) or None)


def _files(kind: str, files: Sequence[KnownFile], told: str, did: Knowledge | None) -> Iterator[Thing]:
    changed = {one.path for one in did.changed} if did is not None else set()
    read = {one.path for one in did.read} if did is not None else set()
    for one in files:
        after = "changed" if one.path in changed else "read" if one.path in read else None
        thing = Thing(kind, one.path, one.path in told, after and f"{after} again" if kind == after else after)
        yield thing if thing.told or thing.after is None else replace(thing, told=_is_near(one.path, told))


def _is_near(path: str, told: str) -> bool:
    """Return whether the folder of a file was told, where there were too many files to name each."""
    folder = path.rpartition("/")[0]
    return bool(folder) and f"{folder}/" in told


def _steps(knew: Knowledge, kinds: frozenset[str], did: Knowledge | None) -> Iterator[Thing]:
    now = {step.text: step.status for step in did.steps} if did is not None else {}
    for one in _shown(knew.steps):
        after = STEPS.get(now.get(one.text, ""))
        yield Thing("step", one.text, "todos" in kinds, after)


def _shown(steps: Sequence[KnownStep]) -> list[KnownStep]:
    """Return the steps that matter most: what was under way, what was still to do, then what was done."""
    order = ("in_progress", "pending", "completed")
    return sorted(steps, key=lambda one: order.index(one.status) if one.status in order else 3)[:MOST_STEPS]


def _size(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB" if count >= 1_000_000 else f"{max(1, round(count / 1000))} kB"
