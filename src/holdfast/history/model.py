"""Imported history as data: hits, the conversations they are from, and what an import did."""

from __future__ import annotations

from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that contains what was searched for."""

    session_id: str
    directory: str
    role: str
    content: str
    at: int
    path: str
    elsewhere: bool = False
    """It was imported on another machine, which shares the store."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation in which something was found."""

    best: Hit
    line: str
    """The line of the best hit with most of the words, shortened around them."""
    more: int
    """How many further hits it has."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search in imported transcripts found."""

    conversations: tuple[Conversation, ...]
    files: int
    """How many are imported."""
    imported_at: int | None
    """When the last of them was read; None if nothing is imported."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a search of the transcripts themselves found."""

    conversations: tuple[Conversation, ...]
    files: int
    """How many were searched."""
    left_out: int


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did."""

    found: int
    files: int
    """How many of those found had something new."""
    passages: int
    unreadable: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ReadMark:
    """How far a file was read, and how it began at that time."""

    mark: str
    read_to: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """One recovery: what a session got back."""

    root: str
    occasion: str
    kinds: tuple[str, ...]
    at: int
