"""A change is docs-only when every file is markdown and no code block is another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.protocol.checks.docs_only import code_blocks, is_markdown
from holdfast.protocol.checks.globs import matches

CODE = "```py\nx = 1\n```\n"
DEEP = ">" * 40
DOCS = {
    "nothing": [],
    "new prose": [("a.md", None, "Text.\n")],
    "deleted prose": [("a.md", "Text.\n", None)],
    "other prose around the same code": [("a.md", f"A.\n\n{CODE}", f"B.\n\n{CODE}\nC.\n")],
    "upper case suffix": [("README.MD", "A.\n", "B.\n")],
    "long suffix": [("a.markdown", "A.\n", "B.\n")],
    "inline code": [("a.md", "Use `a`.\n", "Use `b`.\n")],
}
MORE = {
    "another language": [("a.py", "1", "2")],
    "one of two": [("a.md", "A.\n", "B.\n"), ("b.toml", None, "")],
    "mdx": [("a.mdx", "A.\n", "B.\n")],
    "no suffix": [("md", "A.\n", "B.\n")],
    "new file with code": [("a.md", None, CODE)],
    "deleted file with code": [("a.md", CODE, None)],
    "other code": [("a.md", CODE, CODE.replace("1", "2"))],
    "other language of the block": [("a.md", CODE, CODE.replace("py", "sh"))],
    "blocks in another order": [("a.md", f"{CODE}\n```\ny\n```\n", f"```\ny\n```\n\n{CODE}")],
    "tildes": [("a.md", "~~~\na\n~~~\n", "~~~\nb\n~~~\n")],
    "indented": [("a.md", "Text.\n\n    a\n", "Text.\n\n    b\n")],
    "in a list": [("a.md", "- x\n\n  ```\n  a\n  ```\n", "- x\n\n  ```\n  b\n  ```\n")],
    "in a quotation": [("a.md", "> ```\n> a\n> ```\n", "> ```\n> b\n> ```\n")],
    "never closed": [("a.md", "```\na\n", "```\nb\n")],
    "nested deeper than is parsed": [("a.md", f"{DEEP} ```\n{DEEP} a\n", f"{DEEP} ```\n{DEEP} b\n")],
    "in lists nested deeper than is parsed": [("a.md", f"{'- ' * 15}```\n", f"{'- ' * 15}b\n")],
    "bytes that are no text": [("a.md", "```\n\udc80\n```\n", "```\n\udc81\n```\n")],
}

Triples = list[tuple[str, str | None, str | None]]


@pytest.mark.parametrize("changes", DOCS.values(), ids=DOCS.keys())
def test_documentation_is_nothing_more(changes: Triples) -> None:
    assert all(
        is_markdown(path) and code_blocks(before or "") == code_blocks(after or "") for path, before, after in changes
    )


@pytest.mark.parametrize("changes", MORE.values(), ids=MORE.keys())
def test_what_is_more_than_documentation_is_known(changes: Triples) -> None:
    path, before, after = changes[-1]
    assert not is_markdown(path) or code_blocks(before or "") != code_blocks(after or "")


@given(st.text(st.characters(codec="utf-8", exclude_characters="`\r\n\0"), min_size=1), st.text())
def test_no_fenced_code_hides_below_any_heading(code: str, title: str) -> None:
    heading = f"# {' '.join(title.split())}\n\n"
    assert code_blocks(f"{heading}```\n{code}\n```\n") == (("", f"{code}\n"),)


@pytest.mark.parametrize(
    ("pattern", "path", "named"),
    [
        ("a.md", "a.md", True),
        ("*.md", "a.md", True),
        ("*.md", "b/a.md", False),
        ("**/*.md", "a.md", True),
        ("**/*.md", "b/c/a.md", True),
        ("b/**", "b/c/a.md", True),
        ("b/**", "b", False),
        ("b/**/a.md", "b/a.md", True),
        ("b/**/c/**/a.md", "b/x/c/y/z/a.md", True),
        ("b/**/c/**/a.md", "b/x/y/z/a.md", False),
        ("b**", "b/a.md", False),
        ("[a].md", "[a].md", True),
        ("[a].md", "a.md", False),
        ("?.md", "a.md", True),
        ("/".join(["**"] * 40) + "/*x", "/".join(["a"] * 200), False),
        ("*a" * 60 + "b", "a" * 250, False),
    ],
)
def test_a_pattern_names_a_path(pattern: str, path: str, named: bool) -> None:
    assert matches(pattern, path) is named
