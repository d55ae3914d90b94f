"""What handoff did, as JSON for commands."""

from __future__ import annotations

from typing import Any

from holdfast.handoff.model import Adopted, Written


def written_view(written: Written) -> dict[str, Any]:
    """Return a written archive as JSON."""
    return {
        "file": str(written.file),
        "bytes": written.size,
        "counts": dict(written.counts),
        "signer": written.signer,
        "warnings": written.warnings,
    }


def adopted_view(adopted: Adopted) -> dict[str, Any]:
    """Return an adopted archive as JSON."""
    return {
        "project": str(adopted.project),
        "added": dict(adopted.rows.added),
        "changed": dict(adopted.rows.changed),
        "held": dict(adopted.rows.held),
        "transcripts": dict(adopted.transcripts),
        "notes": adopted.rows.notes,
        "refused": adopted.refused,
        "resume": adopted.resume,
    }
