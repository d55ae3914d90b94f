"""Run the benchmarks and print one table.

python -m bench                      every section
python -m bench startup thoughts     some of them
python -m bench --json numbers.json  every single measurement besides
python -m bench --quick              only to see that they work
python -m bench startup --before DIR beside an earlier checkout that has its own .venv, in the same run
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench import (
    bridge,
    briefing,
    commits,
    dashboard,
    flood,
    hooks,
    http,
    memory,
    recall,
    scale,
    startup,
    teams,
    thoughts,
    tracking,
)
from bench.peers import PeerMissing
from bench.report import QUICK, Effort, Progress, Row, machine, table

SECTIONS: dict[str, Callable[[Effort, Progress], list[Row]]] = {
    "startup": startup.measure,
    "thoughts": thoughts.measure,
    "memory": memory.measure,
    "scale": scale.measure,
    "http": http.measure,
    "tracking": tracking.measure,
    "flood": flood.measure,
    "teams": teams.measure,
    "hooks": hooks.measure,
    "commits": commits.measure,
    "bridge": bridge.measure,
    "recall": recall.measure,
    "briefing": briefing.measure,
    "dashboard": dashboard.measure,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when every target was met, 1 when one was missed or could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"any of: {', '.join(SECTIONS)} (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement there")
    parser.add_argument("--quick", action="store_true", help="a few rounds only; the numbers say nothing")
    parser.add_argument("--before", type=Path, metavar="DIR", help="an earlier checkout with its own .venv (startup)")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")

    effort = replace(QUICK if options.quick else Effort(), before=options.before and options.before.absolute())
    rows: list[Row] = []
    notes: list[str] = []
    for name in options.sections or SECTIONS:
        progress = Progress(name)
        try:
            rows += SECTIONS[name](effort, progress)
        except PeerMissing as missing:
            rows.append(Row(name, holdfast=""))
            notes.append(f"{name} was not measured: {missing}.")
        finally:
            progress.close()
    print(table(rows))
    if options.quick:
        notes.append("A quick run: the numbers say nothing.")
    for note in notes:
        print(note)
    if options.json is not None:
        options.json.write_text(json.dumps({"machine": machine(), "rows": [row.as_json() for row in rows]}, indent=1))
    return 0 if all(row.verdict in ("ok", "shown") for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
