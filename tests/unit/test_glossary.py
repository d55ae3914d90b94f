"""The glossary defines each word once, its paths exist, and the names it retires are used in fewer and fewer places."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "holdfast"
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()

ALLOWED: dict[str, set[str]] = {
    "Asked": {"agents/transcript_entries.py"},
    "Link": {"relay/link.py"},
    "link": {"relay/link.py"},
    "place": {"relay/place.py"},
}
"""Retired names that are still in use, and where. Whoever renames one takes it out; nothing is ever added.

`relay/link.py` and `relay/place.py` stay: relays of the version before are still running and import them by name.
"""


def _rows(text: str) -> list[list[str]]:
    """The cells of a table's rows, without its heading."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[1:]]


WORDS, RETIRED = (_rows(part) for part in GLOSSARY.split("## Retired names"))


def _definitions(path: Path) -> Iterator[tuple[str, str]]:
    """The kind and name of the module and of what it defines at its top level."""
    yield "module", path.parent.name if path.name == "__init__.py" else path.stem
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.ClassDef(name):
                yield "class", name
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                yield "function", name
            case ast.Assign():
                for target in node.targets:
                    yield from _assigned(target)
            case ast.AnnAssign(target):
                yield from _assigned(target)


def _assigned(target: ast.expr) -> Iterator[tuple[str, str]]:
    for name in (part.id for part in ast.walk(target) if isinstance(part, ast.Name)):
        yield ("constant" if name.isupper() else "class"), name  # a type's other name counts as a class


def _still_in_use() -> dict[str, set[str]]:
    rules = [
        (kind.partition(",")[0], name, tuple(re.findall(r"`(.+?)`", kind)))
        for names, kind, _ in RETIRED
        for name in re.findall(r"`(.+?)`", names)
    ]
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        where = path.relative_to(SOURCE).as_posix()
        for kind, name in _definitions(path):
            if any(
                kind == retired_kind and fnmatchcase(name, pattern) and not where.startswith(still_right)
                for retired_kind, pattern, still_right in rules
            ):
                found[name].add(where)
    return dict(found)


def test_no_retired_name_is_used_in_a_new_place_and_none_that_is_gone_is_still_allowed() -> None:
    in_use = _still_in_use()
    new = {name: places - ALLOWED.get(name, set()) for name, places in in_use.items()}
    gone = {name: places - in_use.get(name, set()) for name, places in ALLOWED.items()}
    assert {name: places for name, places in new.items() if places} == {}, "retired: see docs/glossary.md"
    assert {name: places for name, places in gone.items() if places} == {}, "renamed or moved: take it out of ALLOWED"


def test_the_glossary_defines_each_word_once_in_the_order_of_the_alphabet() -> None:
    words = [row[0].lower() for row in WORDS]
    assert words == sorted(set(words))
    assert all(len(row) == 4 for row in WORDS)


def test_everything_that_the_glossary_names_as_a_place_exists() -> None:
    for word, _, where, _ in WORDS:
        paths = re.findall(r"`([\w./]+)`", where)
        assert paths, word
        for path in paths:
            assert (SOURCE / path).exists(), f"{word}: {path}"


def test_the_glossary_is_linked_where_readers_begin() -> None:
    assert "(docs/glossary.md)" in (ROOT / "README.md").read_text()
    assert "(glossary.md)" in (ROOT / "docs" / "architecture.md").read_text()
