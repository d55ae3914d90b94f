"""Random ids, without the milliseconds that importing `uuid` would add to every start of the daemon."""

from __future__ import annotations

import os


def random_id() -> str:
    """Return a random UUID (version 4)."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
