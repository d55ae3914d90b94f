"""The searchable parts of a transcript: requests, answers, commands and tool results. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.agents import TranscriptsPart
from holdfast.agents.transcript_entries import Spoken
from holdfast.lazy_dataclass import dataclass
from holdfast.redaction import masked

HEAD, TAIL = 12_000, 8_000
"""Characters kept of a long text: how it begins, and how it ends, which is where errors are."""
MARGIN = 8_000
"""Characters beyond those that are looked through for secrets: no secret is longer."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One message, tool call or tool result."""

    role: str
    """user, assistant, tool (what was called), result or error (what it said)."""
    content: str
    """Without secrets, and cut in the middle if it is long."""
    at: int
    """When, in milliseconds; 0 if the transcript does not say."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The passages of one part of a file."""

    passages: tuple[Passage, ...]
    end: int
    """Where the next part begins."""
    mark: str


def batches(transcripts: TranscriptsPart, path: Path, offset: int) -> Iterator[Batch]:
    """Yield the rest of a file, part by part."""
    for part in transcripts.batches(path, offset):
        yield Batch(tuple(passages(part.spoken)), part.end, part.mark)


def passages(spoken: Iterable[Spoken]) -> Iterator[Passage]:
    """Yield the searchable passages."""
    for one in spoken:
        kept = _kept(one.text)
        if kept.strip():
            yield Passage(one.role, kept, one.at)


def _kept(text: str) -> str:
    """Return a text without secrets and invalid characters; of a long one, its beginning and its end.

    Secrets are masked in more than is kept, so that none escapes because its other half was cut off.
    """
    if len(text) <= HEAD + TAIL:
        return _clean(text)
    return f"{_clean(text[: HEAD + MARGIN])[:HEAD]}\n…\n{_clean(text[-TAIL - MARGIN :])[-TAIL:]}"


def _clean(text: str) -> str:
    return masked(text).replace("\0", " ").encode("utf-8", "replace").decode()
