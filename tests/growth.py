"""Finds every regular expression of the package, and measures how its time grows with the text it is given."""

from __future__ import annotations

import ast
import gc
import importlib
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import holdfast

SOURCES = Path(holdfast.__file__).parent
METHODS = frozenset({"match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split"})
SIZES = (256, 1_024, 4_096, 65_536, 1_048_576)
MOST_GROWTH = 1.5
"""The power of the length with which the time may grow: linear work has 1, quadratic 2."""
SHORT_S = 0.002
"""Processor time below which a measurement says nothing."""


@dataclass(frozen=True, slots=True)
class Found:
    """A regular expression of the package."""

    key: str
    """MODULE:NAME, or MODULE:FUNCTION:PATTERN for one that is written where it is used."""
    patterns: tuple[re.Pattern[Any], ...]
    """None where it is put together at run time."""
    methods: frozenset[str]
    """How it is used; where that cannot be seen, in the costliest way."""


@dataclass(frozen=True, slots=True)
class Text:
    """An adversarial text of any size: what it begins with, what is repeated, how it ends."""

    repeated: str
    prefix: str = ""
    suffix: str = ""

    def of(self, size: int) -> str:
        """The text with this many characters, or a few more."""
        return self.prefix + self.repeated * (size // len(self.repeated)) + self.suffix


@cache
def discovered() -> dict[str, Found]:
    """Every use of `re` in the package, by its key."""
    found: dict[str, Found] = {}
    for module, source, tree in _modules():
        if "re." not in source:
            continue
        for statement in tree.body:
            for where, call in _calls(statement, ""):
                one = _found(module, source, statement, where, call)
                known = found.get(one.key)
                found[one.key] = one if known is None else Found(one.key, known.patterns, known.methods | one.methods)
    return found


def other_uses() -> list[str]:
    """Files that use `re` in a way that `discovered` does not see."""
    odd = (ast.ImportFrom, ast.Import)
    return [
        f"{path.relative_to(SOURCES)}:{node.lineno}"
        for path in sorted(SOURCES.rglob("*.py"))
        if "import re" in (source := path.read_text()) or "from re " in source
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.ImportFrom) and node.module == "re")
        or (isinstance(node, odd) and any(one.name == "re" and one.asname for one in node.names))
    ]


def taking_apart() -> Iterator[str]:
    """Modules that read a text line by line, or as JSON or TOML from outside."""
    for module, _, tree in _modules():
        for node in ast.walk(tree):
            match node:
                case ast.Call(ast.Attribute(_, "splitlines" | "readline")):
                    yield module
                case ast.Call(ast.Attribute(_, "split"), [ast.Constant("\n" | b"\n" | b"\0")]):
                    yield module
                case ast.Call(ast.Attribute(ast.Name("bounded_json" | "bounded_toml" | "tomllib"), "loads")):
                    yield module


def growth(
    work: Callable[[str], object], text: Text, sizes: tuple[int, ...] = SIZES, enough_s: float = float("inf")
) -> str | None:
    """How the work grows too fast with the text; None where it does not.

    Stops at the first size that shows it, and at one that took `enough_s`: a longer text would show what this did.
    """
    before = _seconds(work, text.of(sizes[0]))
    for shorter, longer in pairwise(sizes):
        most = (longer / shorter) ** MOST_GROWTH
        now = _seconds(work, text.of(longer))
        if now > most * max(before, SHORT_S):
            before = max(before, *(_seconds(work, text.of(shorter)) for _ in range(3)))
            now = min(now, *(_seconds(work, text.of(longer)) for _ in range(2)))
            if now > most * max(before, SHORT_S):
                return f"{text} of {shorter} characters took {before * 1000:.1f} ms, of {longer} {now * 1000:.1f} ms"
        before = now
        if now > enough_s:
            break
    return None


def uses(found: Found) -> Iterator[Callable[[str], object]]:
    """The expression as it is used."""
    for pattern in found.patterns:
        for method in sorted(found.methods):
            yield _use(pattern, method)


def _use(pattern: re.Pattern[Any], method: str) -> Callable[[str], object]:
    def work(text: str) -> object:
        given = text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text
        if method in ("sub", "subn"):
            return pattern.sub(given[:0], given)
        if method == "finditer":
            return sum(1 for _ in pattern.finditer(given))
        return getattr(pattern, method)(given)

    return work


def _seconds(work: Callable[[str], object], text: str) -> float:
    # The processor time of this thread: what else runs on the machine does not count, nor does what other tests left
    # in memory, which the collector would go through again and again.
    collects = gc.isenabled()
    gc.disable()
    try:
        began = time.thread_time()
        work(text)
        return time.thread_time() - began
    finally:
        if collects:
            gc.enable()


def _calls(node: ast.AST, where: str) -> Iterator[tuple[str, ast.Call]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        where = node.name
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in METHODS | {"compile"}
    ):
        yield where, node
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, where)


def _found(module: str, source: str, statement: ast.stmt, where: str, call: ast.Call) -> Found:
    assert isinstance(call.func, ast.Attribute)
    if not where and isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        name = statement.targets[0].id
        value = getattr(importlib.import_module(f"holdfast.{module}"), name)
        everywhere = source if name.startswith("_") else "\n".join(_texts())
        methods = METHODS & set(re.findall(rf"\b{name}\.(\w+)\b", everywhere))
        return Found(f"{module}:{name}", tuple(_patterns(value)), frozenset(methods or {"sub"}))
    method = "sub" if call.func.attr == "compile" else call.func.attr
    pattern: Any = call.args[0]
    if not isinstance(pattern, ast.Constant):
        return Found(f"{module}:{where}", (), frozenset({method}))
    flags = re.compile(r"\bre\.([A-Z]+)\b").findall(ast.unparse(call))
    literal: Any = pattern.value
    compiled = re.compile(literal, sum(re.RegexFlag[flag] for flag in flags))
    return Found(f"{module}:{where}:{pattern.value!r}", (compiled,), frozenset({method}))


@cache
def _modules() -> tuple[tuple[str, str, ast.Module], ...]:
    """Each module of the package: its name, its text, and that parsed."""
    return tuple(
        (".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__"), text, ast.parse(text))
        for path in sorted(SOURCES.rglob("*.py"))
        for text in [path.read_text()]
    )


@cache
def _texts() -> tuple[str, ...]:
    return tuple(path.read_text() for path in SOURCES.rglob("*.py"))


def _patterns(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _patterns(one)
