"""Roots have one spelling; a project is recognised on other paths, machines and worktrees."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import BadInput
from holdfast.identity.project import Root, RootSource, canonical_uri, locate, normalise_remote, path_of, project_key


@pytest.mark.parametrize(
    ("given_uri", "expected"),
    [
        ("/srv/app", "file:///srv/app"),
        ("/srv/app/", "file:///srv/app"),
        ("/srv//app/./x/..", "file:///srv/app"),
        ("file:///srv/app/", "file:///srv/app"),
        ("file://localhost/srv/app", "file:///srv/app"),
        ("file:///srv/my%20app", "file:///srv/my%20app"),
        ("/srv/my app", "file:///srv/my%20app"),
        ("file:///srv/%61pp", "file:///srv/app"),
        ("file:///srv/App", "file:///srv/App"),
        ("file:///srv/%c3%a4", "file:///srv/%C3%A4"),
        ("/srv/ä", "file:///srv/%C3%A4"),
        ("file:///", "file:///"),
        ("/", "file:///"),
        ("//srv/app", "file:///srv/app"),
        ("https://Example.org/Team/App/", "https://example.org/Team/App"),
        ("vscode-remote://host:22/home/x", "vscode-remote://host:22/home/x"),
    ],
)
def test_a_root_has_one_spelling(given_uri: str, expected: str) -> None:
    assert canonical_uri(given_uri) == expected


@pytest.mark.parametrize(
    "bad",
    ["", "relative/path", "file://otherhost/x", "file:relative", "\x00", "/a\x00b", "a" * 5000, "http://[", "\ud800"],
)
def test_what_is_no_root_is_refused_by_name(bad: str) -> None:
    with pytest.raises(BadInput, match="mcpRootUri"):
        canonical_uri(bad)


def test_a_symlink_and_its_target_are_one_root(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert canonical_uri(str(tmp_path / "link")) == canonical_uri(str(tmp_path / "real"))


@given(st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_canonical_roots_stay_as_they_are(name: str) -> None:
    uri = canonical_uri("/nowhere/" + name)
    assert canonical_uri(uri) == uri
    path = path_of(uri)
    assert path is not None and canonical_uri(str(path)) == uri


@pytest.mark.parametrize(
    "remote",
    [
        "git@github.com:owner/repo.git",
        "git@GitHub.com:owner/repo",
        "https://github.com/owner/repo.git",
        "https://user:secret@github.com/owner/repo/",
        "https://github.com:443/owner/repo",
        "ssh://git@github.com:22/owner/repo.git",
        "git://github.com/owner/repo.git",
    ],
)
def test_every_way_to_fetch_a_repository_is_the_same_project(remote: str) -> None:
    assert normalise_remote(remote) == "github.com/owner/repo"


def test_secrets_in_a_remote_never_reach_the_key() -> None:
    assert "secret" not in normalise_remote("https://token:secret@git.example/x:y/z")
    assert "secret" not in normalise_remote("https://token:secret@git.example:port/x")


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def _repository(folder: Path, remote: str | None) -> Path:
    folder.mkdir(parents=True)
    _git(folder, "init", "-q")
    _git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    if remote:
        _git(folder, "remote", "add", "origin", remote)
    return folder


def test_two_clones_of_one_remote_share_a_key_and_subdirectories_differ(tmp_path: Path) -> None:
    one = _repository(tmp_path / "one", "git@github.com:o/r.git")
    two = _repository(tmp_path / "two", "https://github.com/o/r")
    (two / "sub" / "deep").mkdir(parents=True)
    assert project_key(one) == project_key(two) == "github.com/o/r"
    assert project_key(two / "sub" / "deep") == "github.com/o/r#sub/deep"


@pytest.mark.parametrize("remote", ["git@github.com:o/r.git", None])
def test_a_linked_worktree_belongs_to_its_project(tmp_path: Path, remote: str | None) -> None:
    main = _repository(tmp_path / "main", remote)
    _git(main, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    assert project_key(tmp_path / "linked") == project_key(main)
    assert project_key(main) is not None


def test_repositories_without_a_remote_are_apart(tmp_path: Path) -> None:
    assert project_key(_repository(tmp_path / "a", None)) != project_key(_repository(tmp_path / "b", None))


def test_a_directory_without_git_has_no_key(tmp_path: Path) -> None:
    assert project_key(tmp_path) is None
    assert locate(str(tmp_path), RootSource.DIRECTORY).key is None


@pytest.mark.parametrize(
    "text", ["", "gitdir: /nonexistent", "gitdir:", "nonsense", "gitdir: ../../../../etc", "gitdir: a\0b"]
)
def test_a_strange_git_file_is_survived(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_text(text)
    project_key(tmp_path)


@given(st.text(max_size=300))
def test_any_remote_is_survived(text: str) -> None:
    assert isinstance(normalise_remote(text), str)


def test_a_name_that_no_directory_can_have_is_a_root_like_any_other() -> None:
    found = locate("/" + "a" * 300, RootSource.ARGUMENT)
    assert found.uri == "file:///" + "a" * 300 and found.key is None


@pytest.mark.parametrize(
    ("uri", "key", "top"),
    [
        ("file:///p/docs/api", "host/o/r#docs/api", ("file:///p", "host/o/r")),
        ("file:///p%20q/a%23b", "worktrees:/p q/.git#a#b", ("file:///p%20q", "worktrees:/p q/.git")),
        ("file:///p", "host/o/r", None),
        ("file:///p/docs", None, None),
        ("file:///elsewhere", "host/o/r#docs", None),
        ("https://host/docs", "host/o/r#docs", None),
    ],
)
def test_a_directory_of_a_checkout_knows_its_top(uri: str, key: str | None, top: tuple[str, str] | None) -> None:
    found = Root(uri, key, RootSource.DIRECTORY).top
    assert (found and (found.uri, found.key)) == top
