"""Runs checks concurrently: one that fails is a fault with its reason, one that hangs is abandoned."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from holdfast.doctor.findings import Finding, Mark, fault
from holdfast.doctor.surroundings import Surroundings
from holdfast.errors import HoldfastError
from holdfast.lazy_dataclass import dataclass

EXTRA_SECONDS = 30.0
"""Each check has shorter timeouts of its own; this one is for anything they missed."""

Check = Callable[[Surroundings], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class ChainCheck:
    """One link of the chain, and its check."""

    name: str
    check: Check


def examine(links: Sequence[ChainCheck], surroundings: Surroundings) -> list[Finding]:
    """Check these links concurrently; return the findings in their order."""
    limit = surroundings.timeout + EXTRA_SECONDS
    findings: dict[str, list[Finding]] = {}

    def look(link: ChainCheck) -> None:
        findings[link.name] = [replace(finding, link=link.name) for finding in run_check(link.check, surroundings)]

    # Not a thread pool: the interpreter would wait at exit for a thread that hangs.
    threads = [threading.Thread(target=look, args=(link,), daemon=True, name=link.name) for link in links]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + limit
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    ended = dict(findings)
    return [finding for link in links for finding in ended.get(link.name, [_hanging(link, limit)])]


def run_check(check: Check, surroundings: Surroundings) -> list[Finding]:
    """Run a check; its own failure is a finding too."""
    try:
        return list(check(surroundings))
    except HoldfastError as error:
        return [fault(error.message, error.recovery or "See `holdfast status` and daemon.log in the data directory.")]
    except OSError as error:
        named = f" ({error.filename})" if error.filename else ""
        return [fault(f"cannot be checked: {error.strerror or error}{named}.", "Check its permissions and the disk.")]
    except Exception as error:  # noqa: BLE001 - whatever is wrong, the other links are still checked
        return [fault(f"the check failed: {type(error).__name__}: {error}", "Report this line as a bug in Holdfast.")]


def repaired(findings: Iterable[Finding]) -> list[Finding]:
    """Make every safe repair that the findings offer; return the results in order."""
    done = []
    for finding in findings:
        if finding.fix is None:
            continue
        try:
            done.append(Finding(Mark.OK, finding.fix(), link=finding.link))
        except (HoldfastError, OSError) as error:
            repair = finding.repair or "Repair it by hand."
            done.append(Finding(Mark.FAULT, f"could not be repaired: {error}", repair, link=finding.link))
    return done


def _hanging(link: ChainCheck, limit: float) -> Finding:
    repair = "Try again; if it happens again, report it as a bug in Holdfast."
    return replace(fault(f"the check did not finish within {limit:.0f} s.", repair), link=link.name)
