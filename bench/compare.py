"""Both trees in turn: is any row of this checkout worse than it was in an earlier one?

python -m bench.compare DIR                   every section, five rounds of each tree
python -m bench.compare DIR bridge hooks      some of them
python -m bench.compare DIR --rounds 3 --limit 1.1

DIR is an earlier checkout with its own .venv. The trees alternate, so that a busy moment of the machine is everybody's,
and what is compared is the median over the rounds of each row's result: where it was measured beside a peer, its ratio
to that peer in the same run, and a figure of the machine where there is none. Behind each median stand the least and
the most of its rounds. A run that failed is said, not skipped.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.report import drawn

THIS = Path(__file__).resolve().parent.parent
HEADINGS = ("measured", "before", "now", "now / before", "verdict")
Values = dict[str, list[float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when no row is worse than the limit allows, 1 when one is or a run failed."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, metavar="DIR", help="an earlier checkout with its own .venv")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="as for python -m bench (default: all)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="runs of each tree (default: 5)")
    parser.add_argument("--limit", type=float, default=1.05, metavar="X", help="what a row may become (default: 1.05)")
    parser.add_argument("--quick", action="store_true", help="only to see that it works; the numbers say nothing")
    options = parser.parse_args(arguments)

    values: dict[Path, Values] = {options.before.resolve(): {}, THIS: {}}
    failed: list[str] = []
    for number in range(1, options.rounds + 1):
        for tree, taken in values.items():
            print(f"round {number} of {options.rounds}: {'now' if tree == THIS else 'before'}", file=sys.stderr)
            why = _run(tree, options.sections, options.quick, taken)
            failed += [f"round {number}: {why}"] if why else []
    before, now = values.values()
    rows = [_row(what, before.get(what, []), found, options.limit) for what, found in now.items()]
    print(drawn(HEADINGS, rows))
    for line in failed:
        print(line)
    return 0 if not failed and all(row[-1] != "WORSE" for row in rows) else 1


def _run(tree: Path, sections: Sequence[str], quick: bool, taken: Values) -> str | None:
    """Run the benchmarks of one tree; why it gave no figures, if it gave none."""
    env: Mapping[str, str] = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "rows.json"
        command = [str(tree / ".venv/bin/python"), "-m", "bench", *sections, "--json", str(report)]
        ended = subprocess.run(
            [*command, *(["--quick"] if quick else [])],
            cwd=tree,
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if not report.exists():
            return f"{tree} ended with status {ended.returncode}: {ended.stderr[-500:].strip()}"
        rows: list[dict[str, Any]] = json.loads(report.read_text())["rows"]
    for row in rows:
        if row["value"] is not None:
            taken.setdefault(row["what"], []).append(_result(row))
    return None


def _result(row: Mapping[str, Any]) -> float:
    medians: list[float] = [statistics.median(series) for series in row["samples"].values()]
    if "holdfast" in row["samples"] and len(medians) == 2 and all(medians):
        return medians[0] / medians[1]
    return float(row["value"])


def _row(what: str, before: Sequence[float], now: Sequence[float], limit: float) -> tuple[str, ...]:
    if not before:
        return what, "", _shown(now), "", "new"
    then, found = statistics.median(before), statistics.median(now)
    ratio = found / then if then else (1.0 if not found else float("inf"))
    return what, _shown(before), _shown(now), f"{ratio:.3f}", "ok" if ratio <= limit else "WORSE"


def _shown(rounds: Sequence[float]) -> str:
    return f"{statistics.median(rounds):.4g} ({min(rounds):.4g} to {max(rounds):.4g})"


if __name__ == "__main__":
    sys.exit(main())
