"""Signatures of archives: each machine signs with its own key, and remembers the signers that its owner confirmed.

A signature says that nothing was changed since, and by whose key it was made. Whose key that is, only the owner can
say: by the fingerprint, which `handoff` prints there and `adopt` shows here.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from holdfast.files import write_private
from holdfast.files.private import read_or_make
from holdfast.handoff.errors import ArchiveRefused
from holdfast.lazy_dataclass import dataclass

KEY = "archive-key"
"""File of the private key in the data directory; no archive or backup contains it."""
KNOWN = "known-signers.json"
CONTEXT = b"holdfast-handoff-manifest\0"
"""Prefix of what is signed, so that the signature is valid for an archive only."""
KEY_BYTES = 32
SIGNATURE_BYTES = 64


@dataclass(frozen=True, slots=True)
class Signer:
    """The public half of the key that signed an archive."""

    public: bytes

    @property
    def fingerprint(self) -> str:
        """The text that two people compare: 80 bits in groups of four digits."""
        text = hashlib.sha256(self.public).hexdigest()[:20]
        return "-".join(text[start : start + 4] for start in range(0, len(text), 4))


def own_signer(home: Path) -> Signer:
    """Return this machine as a signer."""
    return Signer(_private(home).public_key().public_bytes_raw())


def sign(home: Path, manifest: bytes) -> bytes:
    """Return this machine's signature of a manifest, with its public key."""
    key = _private(home)
    statement = {
        "algorithm": "ed25519",
        "public_key": key.public_key().public_bytes_raw().hex(),
        "signature": key.sign(CONTEXT + manifest).hex(),
    }
    return json.dumps(statement).encode()


def verify(manifest: bytes, signature: bytes) -> Signer | None:
    """Return who signed a manifest; None if the signature does not match."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        statement = json.loads(signature)
        public, sealed = bytes.fromhex(statement["public_key"]), bytes.fromhex(statement["signature"])
        if statement["algorithm"] != "ed25519" or (len(public), len(sealed)) != (KEY_BYTES, SIGNATURE_BYTES):
            return None
        Ed25519PublicKey.from_public_bytes(public).verify(sealed, CONTEXT + manifest)
    except (ValueError, KeyError, TypeError, RecursionError, InvalidSignature):
        return None
    return Signer(public)


def is_known(home: Path, signer: Signer) -> bool:
    """Return whether the owner confirmed this signer, or it is this machine itself."""
    return signer.public.hex() in _known(home) or signer == own_signer(home)


def remember(home: Path, signer: Signer, machine: str, at: str) -> None:
    """Remember a signer that the owner confirmed."""
    known = _known(home) | {signer.public.hex(): {"machine": machine, "since": at}}
    write_private(home / KNOWN, json.dumps(known, indent=1))


def _known(home: Path) -> dict[str, Any]:
    try:
        signers = json.loads((home / KNOWN).read_text())
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        signers = None
    if not isinstance(signers, dict):
        raise ArchiveRefused(
            f"{home / KNOWN} cannot be read, so no signer is known.",
            recovery="Correct it, or remove it and confirm each signer again.",
        )
    return signers


def _private(home: Path) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    path = home / KEY
    text = read_or_make(path)
    try:
        seed = base64.b64decode(f"{text}=", altchars=b"-_", validate=True)
        if len(seed) != KEY_BYTES:
            raise ValueError(len(seed))
    except ValueError:
        raise ArchiveRefused(
            f"{path} holds no key of this machine.",
            recovery="Remove it; the next `holdfast handoff` creates another, which other machines must confirm again.",
        ) from None
    if path.stat().st_mode & 0o077:
        raise ArchiveRefused(f"{path} can be read by others.", recovery=f"`chmod 600 {path}`, or remove it.")
    return Ed25519PrivateKey.from_private_bytes(seed)
