"""One break in an agent's work, a kill or a compaction: what it knew, what was lost, what was told, how it went on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.briefing.knowledge import Knowledge, KnownFile, KnownStep
from holdfast.briefing.ledger.model import Action
from holdfast.briefing.ledger.wording import paths_in, told_paths
from holdfast.briefing.model import Occasion, tokens
from holdfast.briefing.project_sessions import Continued
from holdfast.briefing.queries.breaks import Break
from holdfast.dashboard.amounts import lasting
from holdfast.lazy_dataclass import dataclass
from holdfast.text import counted

AT_ONCE_MS = 1_000
MOST_CHANGED, MOST_READ, MOST_STEPS, MOST_FAILED = 5, 3, 3, 2
STEPS = {"completed": "done", "in_progress": "under way", "pending": "still to do"}
TASK = frozenset({"request", "first", "requests"})
KINDS = {Occasion.COMPACT.value: "compacted", Occasion.CRASH.value: "killed", Occasion.RESUME.value: "resumed"}
NOUNS = {
    "request": ("request", "requests"),
    "changed": ("changed file", "changed files"),
    "read": ("file it had only read", "files it had only read"),
    "error": ("error", "errors"),
    "step": ("open step", "open steps"),
    "answer": ("answer of yours", "answers of yours"),
}
"""What is counted, for one and for several."""


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing that the agent knew."""

    kind: str
    """request, changed, read, step, failed, more, lost, call or conversation."""
    text: str
    told: bool
    """Whether it was carried over."""
    after: str | None = None
    """What became of it: outside text for a request, else in our words."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Things of a kind: how many it knew, and how many of them it still had afterwards."""

    kind: str
    had: int
    told: int

    @property
    def name(self) -> str:
        """What they are called, at the head of a row."""
        one, several = NOUNS[self.kind]
        return (one if self.had == 1 else several).capitalize()

    @property
    def lost(self) -> int:
        """How many are gone."""
        return self.had - self.told

    def words(self, count: int) -> str:
        """Return so many of them in words: "3 of 4 errors"."""
        one, several = NOUNS[self.kind]
        noun = one if self.had == 1 else several
        return f"{count} {noun}" if count == self.had else f"{count} of {self.had} {noun}"


@dataclass(frozen=True, slots=True)
class Step:
    """One of the first actions after a break."""

    kind: str
    """asked, said, planned, read, changed, ran or used."""
    text: str
    """Outside text."""
    after: str | None
    """When, counted from the break; None if only that it was done is known."""
    known: bool
    """Whether it is about something that was carried over."""


@dataclass(frozen=True, slots=True)
class Survival:
    """A break, ready to be drawn and read."""

    kind: str
    """killed, compacted, ended, or resumed: killed, and the same conversation went on."""
    knew: Knowledge
    told: str
    """The text; what would be told now if nobody goes on yet."""
    tokens: int
    at: int | None
    """When it was told; None if it was not yet."""
    size: int | None
    """Bytes of the conversation until then."""
    things: tuple[Thing, ...]
    """What was carried over first, then what was lost."""
    losses: tuple[Loss, ...]
    """Empty for a break that a version kept which did not count."""
    steps: tuple[Step, ...] = ()
    """How it went on."""
    continued: Continued | None = None

    @property
    def taken_up(self) -> tuple[Thing, ...]:
        """What the agent went on with."""
        return tuple(one for one in self.things if one.after is not None)

    @property
    def broke_at(self) -> int:
        """When the work broke off."""
        return self.at if self.kind == "compacted" and self.at is not None else self.knew.last_at

    @property
    def sentence(self) -> str:
        """The picture in words."""
        return " ".join([self._what_happened, *self._went_on])

    @property
    def _what_happened(self) -> str:
        held = f"{self.knew.context:,} tokens" if self.knew.context else counted(self.knew.turns, "turn")
        if self.kind == "resumed":
            away = lasting(max(0, (self.at or 0) - self.knew.last_at))
            return (
                f"It was killed in the middle of its work, and resumed after {away} with its whole conversation:"
                f" {held}. Only what it was doing got no answer."
            )
        back = ", ".join(one.words(one.told) for one in self.losses if one.told)
        told = f"{self.tokens:,} tokens" + (f": {back}." if back else ".")
        if self.at is None:
            return f"It held {held} of conversation. The next agent here is told of them in {told}"
        if self.kind == "compacted":
            return f"Its {held} of conversation were compacted. It was told of them in {told}"
        how = "was killed" if self.kind == "killed" else "ended"
        return f"It {how}, and its {held} of conversation with it. The next session was told of them in {told}"

    @property
    def _went_on(self) -> Iterator[str]:
        same = sum(one.after is not None and one.kind in ("changed", "read") for one in self.things)
        if same:
            yield f"It went on with {counted(same, 'file')} of these."
        elif self.at is not None and self.continued is None:
            yield "It has not done anything since."


def survival(one: Break, continued: Continued | None) -> Survival | None:
    """Return a break as it happened; None if what was known then is no longer kept."""
    if one.knew is None or one.told is None:
        return None
    kind = KINDS.get(one.occasion, "ended")
    losses = () if kind == "resumed" else _losses(one.knew)
    things = _things(kind, one.knew, one.told, frozenset(one.kinds), losses, continued, one.size)
    steps = tuple(_steps_after(one, things, continued)) if continued is not None else ()
    return Survival(
        kind, one.knew, one.told, tokens(one.told), one.at, one.size, things, losses, steps, continued=continued
    )


def waiting(knew: Knowledge, told: str, kinds: Sequence[str]) -> Survival:
    """Return the break of a session that was cut off and not continued yet."""
    losses = _losses(knew)
    things = _things("killed", knew, told, frozenset(kinds), losses, None, None)
    return Survival("killed", knew, told, tokens(told), None, None, things, losses)


def _losses(knew: Knowledge) -> tuple[Loss, ...]:
    return tuple(Loss(one.kind, one.had, one.told) for one in knew.counts if one.kind in NOUNS)


def _things(
    kind: str,
    knew: Knowledge,
    told: str,
    kinds: frozenset[str],
    losses: Sequence[Loss],
    continued: Continued | None,
    size: int | None,
) -> tuple[Thing, ...]:
    did = continued.did if continued is not None else None
    whole = kind == "resumed"
    named = frozenset(paths_in(told))
    things = [
        *_request(knew, whole or not kinds.isdisjoint(TASK), did),
        *_files("changed", knew.changed[:MOST_CHANGED], None if whole else named, did),
        *_steps(knew, whole or "todos" in kinds, did),
        *_files("read", knew.read[:MOST_READ], None if whole else named, did),
        *(
            Thing("failed", f"{one.command} ({one.error})", whole or not kinds.isdisjoint({"failed", "errors"}))
            for one in knew.errors[-MOST_FAILED:]
        ),
    ]
    if whole:
        doing = knew.doing or "the reply it was writing"
        return (*things, Thing("conversation", _conversation(knew, size), told=True), Thing("call", doing, told=False))
    if losses:
        things = [one for one in things if one.told]
        things += _more(losses, things)
        things += [Thing("lost", one.words(one.lost), told=False) for one in losses if one.lost]
    things.sort(key=lambda one: not one.told)
    return (*things, Thing("conversation", _conversation(knew, size), told=False))


def _conversation(knew: Knowledge, size: int | None) -> str:
    turns = counted(knew.turns, "turn") if knew.turns else "its turns"
    if knew.context:
        return f"{knew.context:,} tokens of conversation"
    return f"{turns}, {_size(size)} of conversation" if size else f"{turns} of conversation"


def _more(losses: Sequence[Loss], shown: Sequence[Thing]) -> Iterator[Thing]:
    """Yield how many files were told besides those that are named."""
    for one in losses:
        more = one.told - sum(thing.kind == one.kind for thing in shown)
        if one.kind in ("changed", "read") and more > 0:
            yield Thing(
                "more", counted(more, "more changed file" if one.kind == "changed" else "more read file"), told=True
            )


def _request(knew: Knowledge, told: bool, did: Knowledge | None) -> Iterator[Thing]:
    if knew.request is None:
        return
    asked = did.request if did is not None and did.request != knew.request else None
    yield Thing("request", knew.request, told, asked or (did and did.words) or None)


def _files(
    kind: str, files: Sequence[KnownFile], named: frozenset[str] | None, did: Knowledge | None
) -> Iterator[Thing]:
    """Yield files; `named` are those that were told, None if nothing had to be."""
    changed = {one.path for one in did.changed} if did is not None else set()
    read = {one.path for one in did.read} if did is not None else set()
    for one in files:
        after = "changed" if one.path in changed else "read" if one.path in read else None
        told = named is None or told_paths([one.path])[0] in named
        yield Thing(kind, one.path, told, after and f"{after} again" if kind == after else after)


def _steps(knew: Knowledge, told: bool, did: Knowledge | None) -> Iterator[Thing]:
    now = {step.text: step.status for step in did.steps} if did is not None else {}
    for one in _shown(knew.steps):
        yield Thing("step", one.text, told, STEPS.get(now.get(one.text, "")))


def _shown(steps: Sequence[KnownStep]) -> list[KnownStep]:
    """Return the steps that were not done, those under way first."""
    left = [one for one in steps if one.status != "completed"]
    return sorted(left, key=lambda one: one.status != "in_progress")[:MOST_STEPS]


def _steps_after(one: Break, things: Sequence[Thing], continued: Continued) -> Iterator[Step]:
    """Yield the first actions after a break; without its transcript, what it went on with."""
    carried = {thing.text for thing in things if thing.told}
    for action in continued.first:
        passed = action.at - one.at
        after = "at once" if passed < AT_ONCE_MS else f"{lasting(passed)} later"
        yield Step(action.kind, action.text, after, _is_known(action, carried))
    if not continued.first:
        for thing in things:
            if thing.after and thing.kind in ("changed", "read"):
                yield Step(thing.after.removesuffix(" again"), thing.text, None, known=thing.told)


def _is_known(action: Action, carried: set[str]) -> bool:
    if action.text in carried:
        return True
    return action.kind == "ran" and any(len(one) > 3 and one in action.text for one in carried)


def _size(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB" if count >= 1_000_000 else f"{max(1, round(count / 1000))} kB"
