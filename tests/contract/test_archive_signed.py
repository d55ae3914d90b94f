"""An archive is believed for its signer alone, and a signer for the owner's word alone."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest
from tests.archives import rewritten
from tests.contract.archive_world import Machine, beside, busy_project, play
from tests.contract.conftest import Place

from holdfast.files.private import UnfitSecret
from holdfast.handoff import signing
from holdfast.handoff.container import MANIFEST, SIGNATURE, open_archive
from holdfast.handoff.errors import ArchiveRefused

ASKED = {"signer": None}


def test_a_signer_that_is_not_known_is_named_and_once_confirmed_is_remembered(
    sqlite_place: Place, tmp_path: Path
) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await busy_project(ours)
        name = (await ours.handoff(tmp_path / "a"))["signer"]
        before = await theirs.everything()
        with pytest.raises(ArchiveRefused, match=f"signed by {name}.*--trust-signer {name}"):
            await theirs.adopt(tmp_path / "a", **ASKED)
        with pytest.raises(ArchiveRefused, match="not by 0000"):
            await theirs.adopt(tmp_path / "a", signer="0000")
        assert await theirs.everything() == before
        await theirs.adopt(tmp_path / "a", signer=name)
        await theirs.adopt(tmp_path / "a", **ASKED)
        await ours.adopt(tmp_path / "a", **ASKED)  # a machine knows itself
        known = theirs.folder / "home" / signing.KNOWN
        assert stat.S_IMODE(known.stat().st_mode) == 0o600

    play(sqlite_place, beside(tmp_path), scenario)


def test_an_archive_that_was_changed_or_is_not_signed_is_refused(sqlite_place: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await busy_project(ours)
        good, bad = tmp_path / "good", tmp_path / "bad"
        name = (await ours.handoff(good))["signer"]
        await theirs.adopt(good, signer=name)
        rewritten(good, bad, dict, sign=False)
        with pytest.raises(ArchiveRefused, match=r"is not signed.*--unsigned"):
            await theirs.adopt(bad, **ASKED)
        with pytest.raises(ArchiveRefused, match="is not signed"):
            await theirs.adopt(bad, signer=name)
        await theirs.adopt(bad, unsigned=True)
        with zipfile.ZipFile(good) as file:
            signature = file.read(SIGNATURE)
        rewritten(good, bad, dict, {"created_at": "later"}, sign=False)
        with zipfile.ZipFile(bad, "a") as file:
            file.writestr(SIGNATURE, signature)
        for said in (ASKED, {"signer": name}, {"unsigned": True}):
            with pytest.raises(ArchiveRefused, match=f"{bad} was changed: its signature"):
                await theirs.adopt(bad, **said)
        rewritten(good, bad, dict)  # signed by somebody else
        with pytest.raises(ArchiveRefused, match="does not know"):
            await theirs.adopt(bad, **ASKED)

    play(sqlite_place, beside(tmp_path), scenario)


@pytest.mark.parametrize("signature", [b"", b"{}", b"[" * 900, b'{"algorithm":"ed25519"}', b"x" * 2000])
def test_a_signature_that_is_none_is_refused(signature: bytes, sqlite_place: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await ours.handoff(tmp_path / "good")
        rewritten(tmp_path / "good", tmp_path / "bad", dict, sign=False)
        with zipfile.ZipFile(tmp_path / "bad", "a") as file:
            file.writestr(SIGNATURE, signature)
        with pytest.raises(ArchiveRefused, match="signature"):
            await theirs.adopt(tmp_path / "bad", unsigned=True)

    play(sqlite_place, beside(tmp_path), scenario)


def test_the_private_half_is_for_its_owner_alone_and_travels_with_nothing(sqlite_place: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await busy_project(ours)
        await ours.handoff(tmp_path / "a")
        key = ours.folder / "home" / signing.KEY
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        with zipfile.ZipFile(tmp_path / "a") as file:
            assert not any(key.read_bytes() in file.read(name) for name in file.namelist())
            assert file.namelist()[-2:] == [MANIFEST, SIGNATURE]
        with open_archive(tmp_path / "a") as archive:
            assert archive.signer == signing.own_signer(ours.folder / "home")
        key.chmod(0o644)
        with pytest.raises(UnfitSecret, match="open to others"):
            await ours.handoff(tmp_path / "b")
        key.chmod(0o600)
        key.write_text("short")
        with pytest.raises(UnfitSecret):
            await ours.handoff(tmp_path / "b")
        assert not (tmp_path / "b").exists()

    play(sqlite_place, beside(tmp_path), scenario)
