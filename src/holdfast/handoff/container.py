"""The archive file: a zip with a signed manifest, written atomically, and read only after every check has passed.

Members are streamed in both directions: their unpacked size is limited, and they are never held in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from holdfast.errors import Conflict, NotFound, StoreError
from holdfast.handoff import signing
from holdfast.handoff.errors import ArchiveRefused
from holdfast.handoff.signing import Signer
from holdfast.store.files import beside, publish
from holdfast.teams.config_fields import shown
from holdfast.text import bounded_json

FORMAT = "holdfast-handoff"
VERSION = 2
UNSIGNED_VERSION = 1
"""The format before archives were signed."""
MANIFEST = "manifest.json"
SIGNATURE = "signature.json"
MAX_MEMBERS = 20_000
MAX_LISTING = 8 * 1024 * 1024
"""Bytes of the zip's own list of members, which Python reads whole."""
MAX_MANIFEST = 8 * 1024 * 1024
MAX_SIGNATURE = 1_000
MAX_MEMBER = 1024**3
MAX_TOTAL = 2 * 1024**3 - 2 * 1024**2
"""Unpacked bytes of all members; a file of that size needs no zip64 extensions."""
MAX_RATIO = 100
"""Highest ratio of unpacked to packed bytes; text reaches 5 to 20."""
RATIO_FROM = 64 * 1024 * 1024
"""Unpacked bytes from which the ratio is checked; a small bomb does no harm."""
CHUNK = 1024 * 1024
MAX_MACHINE = 64
MARKS_PER_MEMBER = 5
"""Commas and brackets that a manifest has for each member, and a few besides."""
_END = struct.Struct("<4s4H2LH")
"""The last record of a zip without a comment."""

MEMBER = re.compile(
    r"store/[a-z_]{1,64}\.jsonl"
    r"|transcripts/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,127}){0,6}\.jsonl"
)
"""Valid names of members: no parent directory, no absolute path, no hidden file."""


class Draft:
    """An archive that is being written, private to this user; the file gets its name once it is complete."""

    def __init__(self, target: Path, home: Path, *, replace: bool = False) -> None:
        if target.exists() and not replace:
            raise Conflict(f"{target} exists already.", recovery="Choose another name with -o, or say --replace.")
        if not target.parent.is_dir():
            raise StoreError(f"The folder {target.parent} does not exist.", recovery="Create it first.")
        self._target = target
        self._home = home
        self._path = beside(target, f".partial-{os.getpid()}")
        self._members: dict[str, dict[str, Any]] = {}
        self._total = 0
        with self._writing():
            self._path.unlink(missing_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._raw = os.fdopen(descriptor, "wb")
        self._file = zipfile.ZipFile(self._raw, "w", allowZip64=False)

    def add(self, name: str, content: Iterable[bytes]) -> None:
        """Add one member."""
        if not MEMBER.fullmatch(name):
            raise ArchiveRefused(f"No member of an archive can be called {name!r}.")
        if len(self._members) == MAX_MEMBERS:
            raise ArchiveRefused(f"The project has more than {MAX_MEMBERS} transcripts, more than an archive may hold.")
        found, size = hashlib.sha256(), 0
        with self._writing(), self._file.open(_info(name), "w") as member:
            for chunk in content:
                found.update(chunk)
                size += len(chunk)
                if size > MAX_MEMBER or self._total + size > MAX_TOTAL:
                    raise ArchiveRefused(
                        f"{name} would make the archive larger than it may be: {MAX_MEMBER} bytes for one member,"
                        f" {MAX_TOTAL} for all. Nothing was written.",
                        recovery="Move old transcripts out of the folder in which the agent keeps this project's.",
                    )
                member.write(chunk)
        self._total += size
        self._members[name] = {"size": size, "sha256": found.hexdigest()}

    def finish(self, manifest: dict[str, Any]) -> None:
        """Write and sign the manifest, and give the file its name."""
        described = {"format": FORMAT, "version": VERSION, **manifest, "members": self._members}
        content = json.dumps(described, indent=1).encode()
        signature = signing.sign(self._home, content)
        with self._writing():
            self._file.writestr(_info(MANIFEST), content)
            self._file.writestr(_info(SIGNATURE), signature)
            self._file.close()
            self._raw.close()
            publish(self._path, self._target)

    def discard(self) -> None:
        """Remove the file if it was not finished."""
        with suppress(OSError):  # a full disk; nothing of it is kept anyway
            self._file.close()
            self._raw.close()
        self._path.unlink(missing_ok=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{self._target} could not be written ({error.strerror}).", recovery="Choose another place."
            ) from error


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (stat.S_IFREG | 0o600) << 16
    return info


class Archive:
    """An open archive whose manifest was verified."""

    def __init__(self, path: Path, file: zipfile.ZipFile, manifest: dict[str, Any], signer: Signer | None) -> None:
        self.path = path
        self.manifest = manifest
        self.signer = signer
        """Who signed it; None for one that is not signed."""
        self._file = file

    @property
    def machine(self) -> str:
        """The name of the machine that it says it is from."""
        machine = self.manifest.get("machine")
        if not isinstance(machine, str) or not 0 < len(machine) <= MAX_MACHINE:
            return "elsewhere"
        # As names of machines are: it stands in front of what others wrote, and must not look like a part of it.
        return machine if all(one.isalnum() or one in "._-" for one in machine) else "elsewhere"

    @property
    def origin(self) -> str:
        """Name of the archive, shown with everything that came from it."""
        if self.signer is None:
            return "an archive that nobody signed"
        return f"an archive of {self.machine} ({self.signer.fingerprint})"

    @property
    def names(self) -> list[str]:
        """The names of its members, without the manifest."""
        return sorted(self.manifest["members"])

    def check(self) -> None:
        """Compare everything in it with its manifest."""
        with _zip_errors(self.path):
            _check_sizes(self.path, self._file, self.manifest)
            _check_content(self.path, self._file, self.manifest)

    def stream(self, name: str) -> IO[bytes]:
        """Return the content of a member, from its beginning."""
        return self._file.open(name)

    def lines(self, name: str, longest: int) -> Iterator[bytes]:
        """Yield the lines of a member, each with its end."""
        with self.stream(name) as member:
            while line := member.readline(longest + 1):
                if len(line) > longest:
                    raise _refused(self.path, f"holds a line of more than {longest} bytes in {name}")
                yield line

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def open_archive(path: Path) -> Archive:
    """Open an archive and verify its manifest and signature, before anything else of it is read."""
    if not path.is_file():
        raise NotFound(f"There is no file {path}.")
    try:
        _check_listing(path)
        file = zipfile.ZipFile(path)
    except OSError as error:
        raise StoreError(f"{path} could not be read ({error.strerror}).") from error
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise _refused(path, NOT_AN_ARCHIVE) from None
    try:
        with _zip_errors(path):
            content = _manifest_bytes(path, file)
            signer = _signer(path, file, content)
            return Archive(path, file, _manifest(path, file, content), signer)
    except BaseException:
        file.close()
        raise


NOT_AN_ARCHIVE = "is not an archive of `holdfast handoff`, or was cut off"


@contextmanager
def _zip_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _refused(path, f"is damaged ({error})") from None


def _check_listing(path: Path) -> None:
    """Refuse a list of members that is too long, before Python reads all of it into memory."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size < _END.size:
            raise _refused(path, NOT_AN_ARCHIVE)
        file.seek(-_END.size, os.SEEK_END)
        magic, _, _, _, members, listing, _, comment = _END.unpack(file.read(_END.size))
        file.seek(-min(size, _END.size + 20), os.SEEK_END)
        extended = file.read(4) == b"PK\6\7"
    if magic != b"PK\5\6" or comment:
        raise _refused(path, NOT_AN_ARCHIVE)
    if extended or members > MAX_MEMBERS + 2 or listing > MAX_LISTING:
        raise _refused(path, f"has more than {MAX_MEMBERS} members, or names that are too long")


def _manifest_bytes(path: Path, file: zipfile.ZipFile) -> bytes:
    infos = file.infolist()
    names = [info.filename for info in infos]
    if len(set(names)) < len(names):
        raise _refused(path, "names a member twice")
    for info in infos:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if info.filename not in (MANIFEST, SIGNATURE) and not MEMBER.fullmatch(info.filename):
            raise _refused(path, f"has a member {info.filename[:100]!r}, which no archive may have")
        # The other ways to pack unpack more at once than was asked for.
        packed = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if kind not in (0, stat.S_IFREG) or info.flag_bits & 1 or not packed:
            raise _refused(path, f"has a member {info.filename[:100]!r} that is not a regular file")
    if MANIFEST not in names:
        raise _refused(path, "has no manifest")
    return _read_small(path, file, MANIFEST, MAX_MANIFEST)


def _read_small(path: Path, file: zipfile.ZipFile, name: str, most: int) -> bytes:
    """Read a small member whole, whatever size the zip states."""
    with file.open(name) as member:
        content = member.read(most + 1)
    if len(content) > most:
        raise _refused(path, f"has a {name} of more than {most} bytes")
    return content


def _signer(path: Path, file: zipfile.ZipFile, manifest: bytes) -> Signer | None:
    if SIGNATURE not in file.namelist():
        return None
    signer = signing.verify(manifest, _read_small(path, file, SIGNATURE, MAX_SIGNATURE))
    if signer is None:
        raise _refused(path, "was changed: its signature is not of this manifest")
    return signer


def _manifest(path: Path, file: zipfile.ZipFile, content: bytes) -> dict[str, Any]:
    if content.count(b"{") + content.count(b"[") + content.count(b",") > MARKS_PER_MEMBER * MAX_MEMBERS:
        raise _refused(path, "has a manifest that is too long")
    try:
        manifest = bounded_json.loads(content)
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _refused(path, "has no manifest of `holdfast handoff`")
    if manifest.get("version") not in (VERSION, UNSIGNED_VERSION):
        raise ArchiveRefused(
            f"{path} has format {shown(str(manifest.get('version')), 20)}, written by holdfast"
            f" {shown(str(manifest.get('holdfast')), 20)}; this Holdfast reads format {VERSION}.",
            recovery="Install the same Holdfast on both machines.",
        )
    members = manifest.get("members")
    if not isinstance(members, dict) or set(members) != set(file.namelist()) - {MANIFEST, SIGNATURE}:
        raise _refused(path, "does not hold what its manifest says")
    return manifest


def _check_sizes(path: Path, file: zipfile.ZipFile, manifest: dict[str, Any]) -> None:
    total = 0
    for name, told in manifest["members"].items():
        size = told.get("size") if isinstance(told, dict) else None
        if not isinstance(size, int) or file.getinfo(name).file_size != size:
            raise _refused(path, f"does not hold what its manifest says of {name}")
        if size > MAX_MEMBER:
            raise _refused(path, f"would unpack {name} to {size} bytes; {MAX_MEMBER} are the most")
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
                if size > told["size"]:
                    break
        if size != told["size"] or found.hexdigest() != told.get("sha256"):
            raise _refused(path, f"was changed: {name} does not match its hash")


def _refused(path: Path, why: str) -> ArchiveRefused:
    return ArchiveRefused(f"{path} {why}. Nothing was written.", recovery="Hand the project off again.")
