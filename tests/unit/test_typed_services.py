"""Services and queries speak in types: no JSON in their signatures, and no view made inside of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast

SOURCE = Path(holdfast.__file__).parent
DONE = (
    "reasoning",
    "connections",
    "history",
    "bridge",
    "teams",
    "protocol",
    "briefing",
    "forgetting",
    "records",
    "handoff",
    "moving",
)
"""The packages whose services and queries are typed; the list grows."""
WORKERS = {
    "reasoning": ("session_browser", "retention", "reading", "search", "session_choice"),
    "connections": ("browser_sessions", "reconnects", "keys", "signing_keys", "usage", "tokens"),
    "protocol": ("evidence", "gates", "memories", "mirror", "results", "runs", "steps", "worktree"),
    "forgetting": ("rows", "scope", "copies"),
    "briefing": (
        *("all_projects", "predecessors", "session_directory", "unfinished", "sharing", "moved"),
        *("git_watch", "git_view", "folder_listing"),
    ),
    "history": ("search",),
    "handoff": ("adopt", "local_project"),
}
"""Modules that do a part of a service's work, beside `service.py` and the queries."""
VIEWS = ("views", "rest_models")
UNTYPED = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "Any", "Row"})
"""Names that say nothing of what is in them; `Row` is the store's alias of a dict."""
ALLOWED = {
    "briefing/session_directory.py: git_now": "files and answers by directory, which never leave the process",
    "briefing/unfinished.py: GitNow.committed": "commit times by path, which never leave the process",
    "briefing/queries/agent_sessions.py: all_near": "rows of a table and with columns that the calling query names",
    "bridge/chat/service.py: Chats.loops": "background loops by name, which never leave the process",
    "handoff/queries/adopt.py: insert": "a row of an archive, with the columns that handoff/tables.py lists",
    "handoff/queries/adopt.py: update": "the same",
    "handoff/queries/adopt.py: upsert": "the same",
    "teams/queries/conversations.py: unseen_notices": "sender and text by a notice's id",
    "teams/service.py: Teams.targets": "teams by name, which never leave the process",
    "reasoning/queries/sessions.py: conditions": "an SQL condition and the parameters in it",
    "reasoning/queries/sessions.py: to_thought": "a row of a table or of an archive as a thought",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _modules() -> list[Path]:
    found: list[Path] = []
    for package in DONE:
        for path in sorted((SOURCE / package).rglob("*.py")):
            works = path.stem in ("service", *WORKERS.get(package, ())) or path.stem.endswith("queries")
            if works or path.parent.name == "queries":
                found.append(path)
    return found


def _untyped_names(tree: ast.Module) -> frozenset[str]:
    """The names that stand for no type, with the aliases of them that a module makes for itself."""
    found = set(UNTYPED)
    for node in tree.body:
        made = node.value if isinstance(node, ast.Assign) else None
        if isinstance(made, ast.Subscript | ast.BinOp | ast.Name) and _names(made) & found:
            found |= _names(node) - _names(made)
    return frozenset(found)


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} | {
        one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)
    }


def _signatures(tree: ast.Module) -> Iterator[tuple[str, list[ast.expr]]]:
    """Every public function, method and field of a module, with its annotations."""
    for node in tree.body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            yield node.name, _annotations(node)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for part in node.body:
                if isinstance(part, Function) and not part.name.startswith("_"):
                    yield f"{node.name}.{part.name}", _annotations(part)
                if isinstance(part, ast.AnnAssign):
                    yield f"{node.name}.{ast.unparse(part.target)}", [part.annotation]


def _annotations(function: Function) -> list[ast.expr]:
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    found = [one.annotation for one in arguments if one is not None]
    return [one for one in (*found, function.returns) if one is not None]


def untyped(path: Path) -> list[str]:
    """The public names of a module whose signature says `dict`, `Mapping` or `Any`."""
    tree = ast.parse(path.read_text())
    names = _untyped_names(tree)
    return [
        f"{path.relative_to(SOURCE)}: {name}"
        for name, annotations in _signatures(tree)
        if any(_names(annotation) & names for annotation in annotations)
    ]


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_service_and_a_query_name_the_types_that_they_take_and_return(path: Path) -> None:
    assert [found for found in untyped(path) if found not in ALLOWED] == []


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_view_is_made_inside_a_service_or_a_query(path: Path) -> None:
    tree = ast.parse(path.read_text())
    imports = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert [line for line in imports if any(view in line for view in VIEWS)] == []
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [func.id if isinstance(func, ast.Name) else getattr(func, "attr", "") for func in calls]
    assert [name for name in named if name.endswith("_view") or name == "view"] == []


def test_what_is_allowed_is_there() -> None:
    """An exception that is no longer needed is taken out."""
    assert set(ALLOWED) <= {name for path in _modules() for name in untyped(path)}


def test_the_walk_finds_what_it_looks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.SOURCE", tmp_path)
    module = tmp_path / "service.py"
    module.write_text(
        "JSON = dict[str, int]\n"
        "def shown() -> JSON: ...\n"
        "def fine(number: int) -> list[int]: ...\n"
        "def _own() -> dict[str, int]: ...\n"
        "class Door:\n"
        "    rows: list[Row]\n"
        "    async def ask(self, **values: Any) -> None: ...\n"
    )
    assert untyped(module) == ["service.py: shown", "service.py: Door.rows", "service.py: Door.ask"]
