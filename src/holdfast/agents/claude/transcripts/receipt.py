"""Check in its transcript that an agent received what a hook handed to it.

A hook's answer has no receipt. The daemon may die after its commit, the hook client may give up a moment before the
answer, and an agent may be set up so that it calls the same hook twice. What stands in the transcript was seen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from holdfast.files import open_regular

CHUNK = 1024 * 1024
LOOKED_AT = 64 * CHUNK
"""How far back a turn is searched for. What is older is not found, and is delivered again."""


def reached(transcript: object, headings: Mapping[str, str]) -> frozenset[str]:
    """Return the ids whose headings are in the transcript; all of them if there is no transcript."""
    if not headings:
        return frozenset()
    if not isinstance(transcript, str) or not transcript.startswith("/"):
        return frozenset(headings)
    wanted = {name: json.dumps(heading, ensure_ascii=False)[1:-1].encode() for name, heading in headings.items()}
    try:
        file = open_regular(transcript)
    except (OSError, ValueError):  # ValueError: no path can have such characters
        return frozenset(headings)
    with file:
        return _found(file.fileno(), wanted)


def _found(descriptor: int, wanted: Mapping[str, bytes]) -> frozenset[str]:
    """Look from the end backwards: what is asked for came with this turn or the one before."""
    size, overlap = os.fstat(descriptor).st_size, max(map(len, wanted.values()))
    missing, end, last = dict(wanted), size, max(0, size - LOOKED_AT)
    while missing and end > last:
        start = max(last, end - CHUNK)
        chunk = os.pread(descriptor, end - start + overlap, start)
        missing = {name: heading for name, heading in missing.items() if heading not in chunk}
        end = start
    return frozenset(wanted.keys() - missing)
