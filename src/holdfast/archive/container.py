"""The file itself: a zip with a manifest, written whole or not at all, and believed only after every check."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from holdfast.archive.errors import ArchiveRefused
from holdfast.errors import Conflict, NotFound, StoreError
from holdfast.store.files import beside, publish

FORMAT = "holdfast-handoff"
VERSION = 1
MANIFEST = "manifest.json"
MAX_MEMBERS = 100_000
MAX_MANIFEST = 64 * 1024 * 1024
MAX_TOTAL = 8 * 1024**3
"""Bytes that the members may have together, unpacked."""
MAX_RATIO = 200
"""How often larger the members may be than the file; text packs 5 to 20 times."""
RATIO_FROM = 64 * 1024 * 1024
"""Below this size no ratio is looked at: a small bomb is none."""
CHUNK = 1024 * 1024

MEMBER = re.compile(
    r"store/[a-z_]{1,64}\.jsonl"
    r"|transcripts/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,127}){0,6}\.jsonl"
)
"""What a member may be called: no folder above, no absolute name, nothing hidden, whatever the zip says."""


class Draft:
    """An archive in the making, for this user alone; the file has its name only when it is finished."""

    def __init__(self, target: Path, *, replace: bool = False) -> None:
        if target.exists() and not replace:
            raise Conflict(f"{target} exists already.", recovery="Choose another name with -o, or say --replace.")
        if not target.parent.is_dir():
            raise StoreError(f"The folder {target.parent} does not exist.", recovery="Create it first.")
        self._target = target
        self._path = beside(target, f".partial-{os.getpid()}")
        self._members: dict[str, dict[str, Any]] = {}
        with self._writing():
            self._path.unlink(missing_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._raw = os.fdopen(descriptor, "wb")
        self._file = zipfile.ZipFile(self._raw, "w")

    def add(self, name: str, content: bytes) -> None:
        """Add one member."""
        if not MEMBER.fullmatch(name):
            raise ArchiveRefused(f"No member of an archive can be called {name!r}.")
        self._put(name, content)
        self._members[name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    def finish(self, manifest: dict[str, Any]) -> None:
        """Say what it is and what it holds, and give it its name."""
        told = {"format": FORMAT, "version": VERSION, **manifest, "members": self._members}
        self._put(MANIFEST, json.dumps(told, indent=1).encode())
        with self._writing():
            self._file.close()
            self._raw.close()
            publish(self._path, self._target)

    def discard(self) -> None:
        """Leave nothing of one that was not finished."""
        with suppress(OSError):  # a full disk; nothing of it is kept anyway
            self._file.close()
            self._raw.close()
        self._path.unlink(missing_ok=True)

    def _put(self, name: str, content: bytes) -> None:
        info = zipfile.ZipInfo(name)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (stat.S_IFREG | 0o600) << 16
        with self._writing():
            self._file.writestr(info, content)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{self._target} could not be written ({error.strerror}).", recovery="Choose another place."
            ) from error


class Archive:
    """An archive that passed every check, still open."""

    def __init__(self, manifest: dict[str, Any], file: zipfile.ZipFile) -> None:
        self.manifest = manifest
        self._file = file

    @property
    def names(self) -> list[str]:
        """What it holds, without the manifest."""
        return sorted(self.manifest["members"])

    def read(self, name: str) -> bytes:
        """The content of a member."""
        return self._file.read(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def opened(path: Path) -> Archive:
    """The archive at `path`, after everything in it was compared with its manifest."""
    if not path.is_file():
        raise NotFound(f"There is no file {path}.")
    try:
        file = zipfile.ZipFile(path)
    except OSError as error:
        raise StoreError(f"{path} could not be read ({error.strerror}).") from error
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise _refused(path, "is no archive of `holdfast handoff`, or was cut off") from None
    try:
        manifest = _manifest(path, file)
        _check_sizes(path, file, manifest)
        _check_content(path, file, manifest)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        file.close()
        raise _refused(path, f"is damaged ({error})") from None
    except BaseException:
        file.close()
        raise
    return Archive(manifest, file)


def _manifest(path: Path, file: zipfile.ZipFile) -> dict[str, Any]:
    infos = file.infolist()
    if len(infos) > MAX_MEMBERS:
        raise _refused(path, f"has more than {MAX_MEMBERS} members")
    names = [info.filename for info in infos]
    if len(set(names)) < len(names):
        raise _refused(path, "names a member twice")
    for info in infos:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if info.filename != MANIFEST and not MEMBER.fullmatch(info.filename):
            raise _refused(path, f"has a member {info.filename[:100]!r}, which no archive may have")
        if kind not in (0, stat.S_IFREG) or info.flag_bits & 1:
            raise _refused(path, f"has a member {info.filename[:100]!r} that is no plain file")
    if MANIFEST not in names or file.getinfo(MANIFEST).file_size > MAX_MANIFEST:
        raise _refused(path, "has no manifest")
    try:
        manifest = json.loads(file.read(MANIFEST))
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _refused(path, "has no manifest of `holdfast handoff`")
    if manifest.get("version") != VERSION:
        raise ArchiveRefused(
            f"{path} has format {str(manifest.get('version'))[:20]}, written by holdfast"
            f" {str(manifest.get('holdfast'))[:20]}; this Holdfast reads format {VERSION}.",
            recovery="Install the same Holdfast on both machines.",
        )
    members = manifest.get("members")
    if not isinstance(members, dict) or set(members) != set(names) - {MANIFEST}:
        raise _refused(path, "does not hold what its manifest says")
    return manifest


def _check_sizes(path: Path, file: zipfile.ZipFile, manifest: dict[str, Any]) -> None:
    total = 0
    for name, told in manifest["members"].items():
        size = told.get("size") if isinstance(told, dict) else None
        if not isinstance(size, int) or file.getinfo(name).file_size != size:
            raise _refused(path, f"does not hold what its manifest says of {name}")
        total += size
    if total > MAX_TOTAL or (total > RATIO_FROM and total > MAX_RATIO * path.stat().st_size):
        raise _refused(path, f"would unpack to {total} bytes, more than it can honestly hold")


def _check_content(path: Path, file: zipfile.ZipFile, manifest: dict[str, Any]) -> None:
    for name, told in manifest["members"].items():
        found, size = hashlib.sha256(), 0
        with file.open(name) as member:
            while chunk := member.read(CHUNK):
                found.update(chunk)
                size += len(chunk)
        if size != told["size"] or found.hexdigest() != told.get("sha256"):
            raise _refused(path, f"was changed: {name} does not match its hash")


def _refused(path: Path, why: str) -> ArchiveRefused:
    return ArchiveRefused(f"{path} {why}. Nothing was written.", recovery="Hand the project off again.")
