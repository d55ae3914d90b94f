"""Services and queries speak in dataclasses: JSON is made by views, and rows stay inside queries."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "holdfast"

PACKAGES = ("reasoning", "connections", "history")
"""Packages whose services are typed."""

SERVICES = {
    "reasoning": ("service.py", "library.py", "retention.py", "reading.py", "search.py", "session_choice.py"),
    "connections": ("service.py", "reconnects.py", "keys.py", "signing_keys.py", "usage.py", "tokens.py"),
    "history": ("service.py", "search.py", "scanning.py"),
}
"""Modules of a package that do its work, beside its queries."""

UNTYPED = {"dict", "Dict", "Any", "Mapping", "MutableMapping", "Row"}

ALLOWED = {
    "reasoning/queries/sessions.py:conditions": "an SQL condition and the parameters in it",
    "reasoning/queries/sessions.py:to_thought": "a row of a table or of an archive as a thought",
}


def modules(package: str) -> Iterator[Path]:
    """The services and queries of a package."""
    folder = SOURCE / package
    for name in SERVICES[package]:
        yield folder / name
    yield from sorted(folder.glob("*queries*.py"))
    yield from sorted((folder / "queries").glob("*.py"))


def public_functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions of a module and methods of its classes that others may call."""
    for node in tree.body:
        members = node.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_") else [node]
        for member in members:
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and not member.name.startswith("_"):
                yield member


def untyped_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """What of a signature says nothing about what is passed."""
    given = function.args
    arguments = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    annotations = [one.annotation for one in arguments if one is not None] + [function.returns]
    names = {
        node.id if isinstance(node, ast.Name) else node.attr
        for annotation in annotations
        if annotation is not None
        for node in ast.walk(annotation)
        if isinstance(node, ast.Name | ast.Attribute)
    }
    return names & UNTYPED


@pytest.mark.parametrize("package", PACKAGES)
def test_no_service_and_no_query_speaks_in_dictionaries(package: str) -> None:
    found = {}
    for path in modules(package):
        for function in public_functions(ast.parse(path.read_text())):
            name = f"{path.relative_to(SOURCE)}:{function.name}"
            if (untyped := untyped_names(function)) and name not in ALLOWED:
                found[name] = sorted(untyped)
    assert found == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_service_and_no_query_makes_a_view(package: str) -> None:
    for path in modules(package):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names = {node.module or "", *(f"{node.module}.{one.name}" for one in node.names)}
                assert not any(name.endswith(("views", "rest_models", ".entries", "_view")) for name in names), path


def test_what_is_allowed_is_there() -> None:
    """An exception that is no longer needed is taken out."""
    for name in ALLOWED:
        path, _, function = name.partition(":")
        functions = {one.name: one for one in public_functions(ast.parse((SOURCE / path).read_text()))}
        assert untyped_names(functions[function]), name
