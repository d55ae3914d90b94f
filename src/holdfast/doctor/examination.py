"""Looking at links at the same time: a check that fails is a fault with its reason, one that hangs is cut off."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from holdfast.doctor.findings import Finding, Mark, fault
from holdfast.doctor.surroundings import Surroundings
from holdfast.errors import HoldfastError

BEYOND_PATIENCE = 30.0
"""Each check has shorter limits of its own; this one is for what they did not foresee."""

Check = Callable[[Surroundings], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Link:
    """One link of the chain, and what looks at it."""

    name: str
    check: Check


def examine(links: Sequence[Link], surroundings: Surroundings) -> list[Finding]:
    """What all these links are like, in their order, looked at at the same time."""
    limit = surroundings.patience + BEYOND_PATIENCE
    found: dict[str, list[Finding]] = {}

    def look(link: Link) -> None:
        found[link.name] = [replace(finding, link=link.name) for finding in asked(link.check, surroundings)]

    # Not a pool: at its end the interpreter would wait for a thread that hangs.
    threads = [threading.Thread(target=look, args=(link,), daemon=True, name=link.name) for link in links]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + limit
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    ended = dict(found)
    return [finding for link in links for finding in ended.get(link.name, [_hanging(link, limit)])]


def asked(check: Check, surroundings: Surroundings) -> list[Finding]:
    """What a check says; its own failure is a finding too."""
    try:
        return list(check(surroundings))
    except HoldfastError as error:
        return [fault(error.message, error.recovery or "`holdfast status` and the daemon.log of the home say more.")]
    except OSError as error:
        named = f" ({error.filename})" if error.filename else ""
        return [fault(f"cannot be looked at: {error.strerror or error}{named}.", "Check its permissions and the disk.")]
    except Exception as error:  # noqa: BLE001 - whatever is wrong, the other links are still looked at
        return [fault(f"the check failed: {type(error).__name__}: {error}", "Report this line as a bug of Holdfast.")]


def repaired(findings: Iterable[Finding]) -> list[Finding]:
    """Make every safe repair that the findings offer; each is told in the order it was made."""
    done = []
    for finding in findings:
        if finding.fix is None:
            continue
        try:
            done.append(Finding(Mark.OK, finding.fix(), link=finding.link))
        except (HoldfastError, OSError) as error:
            repair = finding.repair or "Do it by hand."
            done.append(Finding(Mark.FAULT, f"could not be repaired: {error}", repair, link=finding.link))
    return done


def _hanging(link: Link, limit: float) -> Finding:
    repair = "Try again; if it stays so, report it as a bug of Holdfast."
    return replace(fault(f"the check did not end within {limit:.0f} s.", repair), link=link.name)
