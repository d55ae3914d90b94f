"""What a store on SQLite must not pay for."""

from __future__ import annotations

import subprocess
import sys


def test_the_postgres_driver_is_imported_only_when_it_is_used() -> None:
    check = (
        "import sys, holdfast.store.opening, holdfast.store.backup.restore, holdfast.store.verify;"
        "print([name for name in sys.modules if name.startswith('psycopg')])"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
