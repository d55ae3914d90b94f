"""Commands that README and docs show: in blocks of commands, in tables and in headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
GROUPS = ("project", "admin", "daemon")
"""Groups whose commands can be called without them: `holdfast admin verify` is `holdfast verify`."""

_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\|(.*)\|$", re.MULTILINE)
_CELL = re.compile(r" (`[^`]+`(?:, `[^`]+`)*) ")
_HEADING = re.compile(r"^#+ `(holdfast [^`]*)`", re.MULTILINE)
_PROGRAMS = ("holdfast", "claude", "make", "git", "uv", "pipx", "pip", "curl")
_PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b|[\[\]…|<>]")


@dataclass(frozen=True)
class Documented:
    """A command, or the pattern of one, as a document has it."""

    where: str
    text: str

    @property
    def is_pattern(self) -> bool:
        """Whether something is to be filled in before it can be run."""
        unquoted = re.sub(r'"[^"]*"', "", self.text.partition(" > ")[0])
        return self.name is not None and _PLACEHOLDER.search(unquoted) is not None

    @property
    def spelled(self) -> str:
        """The command as it is spelled, without arguments and options."""
        return self.text if self.name is None else " ".join(("holdfast", *_words(self.text)))

    @property
    def name(self) -> str | None:
        """Holdfast's command, without its group; None if it is another program's, or more than one command."""
        words = _words(self.text)
        if not re.match(r"holdfast\b", self.text) or "&&" in self.text:
            return None
        return " ".join(words[1:] if len(words) > 1 and words[0] in GROUPS else words)


def documented() -> list[Documented]:
    """Every command of every document, once for each document."""
    return list(dict.fromkeys(one for path in DOCUMENTS for one in _in_document(path)))


def blocks_with(program: str) -> dict[str, str]:
    """The blocks of commands in which a program is called, by the document that has them."""
    return {
        path.name: block
        for path in DOCUMENTS
        for language, block in _BLOCK.findall(path.read_text())
        if language in ("sh", "bash") and f"{program} " in block
    }


def _in_document(path: Path) -> Iterator[Documented]:
    text, where = path.read_text(), path.relative_to(ROOT).as_posix()
    for language, block in _BLOCK.findall(text):
        for line in _lines(language, block):
            yield Documented(where, line)
    rest = _BLOCK.sub("", text)
    for row in _ROW.findall(rest):
        cells = [cell for cell in re.split(r"(?<!\\)\|", row) if _CELL.fullmatch(cell)]
        for code in re.findall(r"`([^`]+)`", " ".join(cells).replace("\\|", "|")):
            if code.split()[0] in _PROGRAMS and code != "claude":
                yield Documented(where, code)
    for heading in _HEADING.findall(rest):
        yield Documented(where, heading)


def _lines(language: str, block: str) -> Iterator[str]:
    """The commands in a block; in one that also shows output they have a prompt, or begin with a program's name."""
    lines = re.sub(r"\\\n *", "", block).splitlines()
    for line in (line.strip() for line in lines):
        command = re.sub(r"(?:^|\s+)# .*", "", line.removeprefix("$ "))
        if language in ("sh", "bash") or (language == "console" and line.startswith("$ ")):
            if command:
                yield command
        elif language == "" and (line.startswith("$ ") or re.match(r"(holdfast|claude) [a-z]", line)):
            yield command


def _words(text: str) -> list[str]:
    """The words after `holdfast` that name the command."""
    words: list[str] = []
    for word in text.split()[1:]:
        if not re.fullmatch(r"[a-z][a-z-]+", word) or len(words) == 3:
            break
        words.append(word)
    return words
