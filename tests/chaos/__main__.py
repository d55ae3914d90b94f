"""`python -m tests.chaos`: the workload under every fault on both engines, and the checker of all of it.

python -m tests.chaos --seed 7                        every fault on both engines
python -m tests.chaos --seed 7 --faults kill,pause    some of them
python -m tests.chaos --plant no-fsync                a planted defect, under the faults that must find it
python -m tests.chaos --plants                        every planted defect, one after the other
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.damages import DAMAGES
from tests.chaos.faults import FAULTS
from tests.chaos.plants import PLANTS, SOURCES
from tests.chaos.report import Result, excerpts
from tests.chaos.runs import ENGINES, SECONDS, Wanted, run


def repeat_with(wanted: Wanted, result: Result) -> str:
    """The command that does one episode again."""
    plant = f" --plant {wanted.plant}" if wanted.plant else ""
    return f"python -m tests.chaos --seed {wanted.seed} --engine {result.engine} --faults {result.fault}{plant}"


def carry_out(wanted: Wanted) -> list[Result]:
    """A run with its report; its folder is kept where something was found."""
    folder = Path(tempfile.mkdtemp(prefix="hf-chaos-", dir="/tmp"))  # short, because of the socket's path
    results = run(wanted, folder)
    for result in results:
        for text in excerpts(result, repeat_with(wanted, result)):
            print(text, flush=True)
    if all(result.clean for result in results) and not wanted.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return results


def find_plants(names: list[str], seed: int, seconds: float, sources: Path) -> int:
    """Run each planted defect under its faults; how many were not found."""
    found: dict[str, str] = {}
    for name in names:
        plant = PLANTS[name]
        print(f"\n{name}: {plant.breaks}", flush=True)
        wanted = Wanted(seed, (plant.engine,), plant.faults, seconds, name, sources=sources)
        results = carry_out(wanted)
        by = [f"{result.fault}: {', '.join(sorted({one.check for one in result.violations}))}" for result in results]
        found[name] = "; ".join(text for result, text in zip(results, by, strict=True) if result.violations)
    print(f"\n{'defect':26}found by")
    for name, how in found.items():
        print(f"{name:26}{how or 'NOT FOUND'}")
    return sum(not how for how in found.values())


def main(arguments: list[str] | None = None) -> int:
    """Carry out what the command line says; 1 when something was found."""
    known = [*FAULTS, *DAMAGES]
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Clients at work under faults.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=(*ENGINES, "both"), default="both")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long clients work under each fault")
    parser.add_argument("--faults", default=",".join(known), help=f"of: {', '.join(known)}")
    parser.add_argument("--plant", choices=sorted(PLANTS), help="plant this defect")
    parser.add_argument("--plants", action="store_true", help="plant every defect, one after the other")
    parser.add_argument("--sources", type=Path, default=SOURCES, help="another src directory to run")
    parser.add_argument("--keep", action="store_true", help="keep histories and logs also of a clean run")
    given = parser.parse_args(arguments)
    faults = tuple(given.faults.split(","))
    if unknown := set(faults) - set(known):
        parser.error(f"--faults: there is no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if given.plants or (given.plant and given.faults == parser.get_default("faults")):
        names = [given.plant] if given.plant else list(PLANTS)
        return int(find_plants(names, given.seed, given.seconds, given.sources.resolve()) > 0)
    engines = ENGINES if given.engine == "both" else (given.engine,)
    began = time.monotonic()
    results = carry_out(
        Wanted(given.seed, engines, faults, given.seconds, given.plant, given.keep, sources=given.sources.resolve())
    )
    bad = [result for result in results if not result.clean]
    print(f"\nseed {given.seed}: {len(results)} episodes in {time.monotonic() - began:.0f} s, {len(bad)} not clean")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
