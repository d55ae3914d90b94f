"""A Holdfast whose time a test puts forward."""

from __future__ import annotations

from pathlib import Path

from tests.installation import Installation
from tests.postgres import PostgresServer, fresh_database


class Clocked(Installation):
    """An installation of a test's own, in which time passes as the test says."""

    def __init__(self, home: Path, server: PostgresServer | None = None, *, keep: bool = False) -> None:
        """`server`: whose database it works on, which is kept for several tests if so asked."""
        super().__init__(home)
        self._clock = home.with_name(f"{home.name}-clock")
        self._ahead = 0
        self.settings["HOLDFAST_TEST_CLOCK"] = str(self._clock)
        if server is not None:
            self.settings["HOLDFAST_DATABASE_URL"] = fresh_database(server, keep=keep)

    def later(self, milliseconds: int) -> None:
        """Let time pass."""
        self._ahead += milliseconds
        written = self._clock.with_suffix(".new")
        written.write_text(str(self._ahead))
        written.replace(self._clock)  # at once: the daemon may be reading
