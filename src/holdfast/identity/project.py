"""Which project a root stands for: canonical root URIs, and a key that other machines and worktrees share."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from holdfast.errors import BadInput
from holdfast.files import open_regular
from holdfast.lazy_dataclass import dataclass

MAX_ROOT = 4096
READ_LIMIT = 256 * 1024
PATH_SAFE = "/-._~!$&'()*+,;=:@"
"""Characters a path component of a URI may hold unescaped (RFC 3986)."""

DEFAULT_PORTS = {"https": 443, "http": 80, "git": 9418}


# They read what an untrusted repository wrote, so they must run in linear time.
_SECTION = re.compile(r'\[\s*+([A-Za-z0-9.-]++)(?:\s++"((?:[^"\\]++|\\.)*+)")?\s*+\]')
_URL = re.compile(r"url\s*+=\s*(.+)$", re.IGNORECASE)
_IMPOSSIBLE = re.compile(r"[\x00-\x1f\ud800-\udfff]")
_SCP_LIKE = re.compile(r"(?:[^/@:]++@)?([A-Za-z0-9._-]++):(?!/{2})(.+)$")


class RootSource(StrEnum):
    """Where a root came from, strongest first."""

    ARGUMENT = "argument"
    BOUND = "bound"
    CLIENT = "client"
    ENVIRONMENT = "environment"
    DIRECTORY = "directory"


@dataclass(frozen=True, slots=True)
class Root:
    """A project root: its canonical URI, and its portable key when it is a git checkout."""

    uri: str
    key: str | None
    source: RootSource

    @property
    def top(self) -> Root | None:
        """The top of the checkout that this is a directory of; None if it is the top or in no checkout."""
        name, _, inside = (self.key or "").partition("#")
        path = path_of(self.uri) if inside else None
        if path is None or not str(path).endswith(f"/{inside}"):
            return None
        return Root(_spelled(str(path).removesuffix(f"/{inside}")), name, RootSource.DIRECTORY)


@dataclass(frozen=True, slots=True)
class Checkout:
    top: Path
    common: str
    """The directory that all worktrees of the repository share."""
    branch: str | None
    """None while HEAD is detached."""


def locate(text: str, source: RootSource) -> Root:
    """Return the root that a URI or absolute path names."""
    uri = canonical_uri(text)
    path = path_of(uri)
    return Root(uri, None if path is None else project_key(path), source)


def canonical_uri(text: str) -> str:
    """Spell a root one way: symlinks resolved, percent-encoding normalised, no trailing slash, case kept."""
    if len(text) > MAX_ROOT:
        raise BadInput("mcpRootUri", f"is longer than {MAX_ROOT} characters")
    if not text or _IMPOSSIBLE.search(text):
        raise BadInput("mcpRootUri", "is empty or holds characters no root can have")
    if text.startswith("/"):
        return _file_uri(text)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise BadInput("mcpRootUri", f"is not a URI ({error})") from error
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise BadInput("mcpRootUri", "names a file on another host", recovery="Use file:///absolute/path.")
        return _file_uri(unquote(parts.path, errors="surrogateescape"))
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*", parts.scheme) or not (parts.netloc or parts.path):
        raise BadInput(
            "mcpRootUri", "is neither a URI nor an absolute path", recovery="Example: file:///home/me/project"
        )
    host = (parts.hostname or "") + (f":{port}" if port else "")
    path = quote(unquote(parts.path, errors="surrogateescape"), safe=PATH_SAFE, errors="surrogateescape")
    return f"{parts.scheme}://{host}{path.rstrip('/')}"


@lru_cache(1_000)
def path_of(uri: str) -> Path | None:
    """Return the directory that a root names; None if it is not a file URI. Cached: one hook asks twenty times."""
    if not uri.startswith("file://"):
        return None
    return Path(unquote(uri.removeprefix("file://"), errors="surrogateescape"))


def _file_uri(path: str) -> str:
    if "\0" in path or not path.startswith("/"):
        raise BadInput("mcpRootUri", "is not an absolute path", recovery="Example: file:///home/me/project")
    try:
        real = "/" + os.path.realpath(path).lstrip("/")  # POSIX allows two leading slashes
    except RecursionError:  # Python follows a chain of links by calling itself
        raise BadInput("mcpRootUri", "leads through too many symbolic links") from None
    return _spelled(real)


def _spelled(path: str) -> str:
    return "file://" + quote(os.fsencode(path), safe=PATH_SAFE)


def project_key(path: Path) -> str | None:
    """Name a project the same on every machine: by its git remote and the subdirectory.

    Git's files are read, git itself is never run: nothing a project brings is executed. Without a remote the
    repository itself is the key, so that linked worktrees still find each other.
    """
    top = top_of(path)
    return None if top is None else key_in_checkout(path, top)


def key_in_checkout(path: Path, top: Path) -> str | None:
    """Return the key of a directory in a checkout whose top is known."""
    common = _common_dir(top / ".git")
    if common is None:
        return None
    remote = _remote_url(_read(common / "config") or "")
    name = normalise_remote(remote) if remote else f"worktrees:{os.path.realpath(common)}"
    inside = path.relative_to(top).as_posix()
    return name if inside == "." else f"{name}#{inside}"


def checkout_of(path: Path) -> Checkout | None:
    """Find the checkout around a directory from git's files only."""
    top = top_of(path)
    if top is None:
        return None
    dot_git = top / ".git"
    common = _common_dir(dot_git)
    if common is None:
        return None
    linked = (_read(dot_git) or "").removeprefix("gitdir:").strip()
    head = _read((top / linked if linked else dot_git) / "HEAD") or ""
    branch = head.strip().removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None
    return Checkout(top, os.path.realpath(common), branch)


def top_of(path: Path) -> Path | None:
    """Return the top of the checkout around a directory: the nearest one that holds `.git`."""
    folder = str(path).rstrip("/")
    # With strings: every hook asks, and a Path for each folder above takes ten times as long.
    while not os.path.exists(f"{folder}/.git"):  # noqa: PTH110
        if not folder:
            return None
        folder = folder.rpartition("/")[0]
    return Path(folder or "/")


def _common_dir(dot_git: Path) -> Path | None:
    """Return the directory that all worktrees of a repository share."""
    if dot_git.is_dir():
        return dot_git
    text = _read(dot_git)
    if text is None or not text.startswith("gitdir:") or "\0" in text:
        return None
    git_dir = dot_git.parent / text.removeprefix("gitdir:").strip()
    shared = _read(git_dir / "commondir")
    return git_dir if shared is None or "\0" in shared else git_dir / shared.strip()


def _remote_url(config: str) -> str | None:
    """Return the URL of `origin` in a git configuration, or else of the first remote."""
    remotes: dict[str, str] = {}
    section: str | None = None
    for raw in config.splitlines():
        line = raw.strip()
        header = _SECTION.match(line)
        if header:
            section = header[2] if header[1].lower() == "remote" else None
            line = line[header.end() :].strip()
        setting = _URL.match(line)
        if section is not None and setting:
            remotes.setdefault(section, setting[1].strip().strip('"'))
    return remotes.get("origin") or next(iter(remotes.values()), None)


def normalise_remote(url: str) -> str:
    """Reduce a remote URL of any scheme to host/owner/repository, without user info."""
    scp_like = _SCP_LIKE.match(url)
    if scp_like and "://" not in url:
        return _remote_name(scp_like[1], scp_like[2])
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return f"remote:{url.rsplit('@', 1)[-1]}"
    if parts.scheme in ("", "file") or not parts.hostname:
        return "local:" + os.path.normpath(parts.path).removesuffix(".git")
    host = parts.hostname
    if port and parts.scheme in DEFAULT_PORTS and port != DEFAULT_PORTS[parts.scheme]:
        host = f"{host}:{port}"
    return _remote_name(host, unquote(parts.path))


def _remote_name(host: str, path: str) -> str:
    return f"{host.lower()}/{path.strip('/').removesuffix('.git').rstrip('/')}"


def _read(path: Path) -> str | None:
    """Read the beginning of a small text file; None if it cannot be read."""
    try:
        # Reading a pipe in the place of git's file would block every project forever.
        with open_regular(path) as file:
            return file.read(READ_LIMIT).decode("utf-8", "surrogateescape")
    except OSError:
        return None
