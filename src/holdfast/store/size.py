"""How much room the store takes."""

from __future__ import annotations

from holdfast.store import Tx


def size(tx: Tx) -> int:
    """Return the bytes of the database, free pages included."""
    sql = (
        "SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()"
        if tx.engine == "sqlite"
        else "SELECT pg_database_size(current_database()) AS bytes"
    )
    row = tx.one(sql)
    return int(row["bytes"]) if row else 0
