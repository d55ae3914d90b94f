"""The whole chain, from the installation to the chats: its checks and their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field

from holdfast.doctor import agents, daemon, hooks, installation, neighbours, registration, store, work
from holdfast.doctor.examination import ChainCheck, examine, repaired
from holdfast.doctor.findings import Finding, Mark
from holdfast.doctor.surroundings import Surroundings
from holdfast.lazy_dataclass import dataclass

DAEMON = ChainCheck("daemon", daemon.check_daemon)
STAGES: tuple[tuple[ChainCheck, ...], ...] = (
    (
        ChainCheck("installation", installation.check_installation),
        ChainCheck("home", installation.check_home),
    ),
    (
        ChainCheck("key", installation.check_key),
        ChainCheck("socket", daemon.check_socket),
        ChainCheck("store", store.check_store),
    ),
    (DAEMON,),
    # Alone, because it measures how long an agent waits.
    (ChainCheck("relay", registration.check_relay),),
    (
        ChainCheck("losses", store.check_losses),
        ChainCheck("http", daemon.check_http),
        ChainCheck("loops", work.check_background),
        ChainCheck("mcp server", registration.check_registration),
        ChainCheck("hooks", hooks.check_hooks),
        ChainCheck("briefings", hooks.check_unhooked),
        ChainCheck("neighbours", neighbours.check_neighbours),
        ChainCheck("agent", agents.check_agent),
        ChainCheck("transcripts", agents.check_transcripts),
        ChainCheck("serena", agents.check_serena),
        ChainCheck("commit gate", work.check_commit_gate),
        ChainCheck("teams", work.check_teams),
        ChainCheck("queue", work.check_queue),
        ChainCheck("telegram", work.check_telegram),
        ChainCheck("chats", work.check_chats),
    ),
)
"""Each stage depends on the one before; the checks of a stage run concurrently."""

Show = Callable[[Iterable[Finding]], None]


@dataclass(slots=True)
class Diagnosis:
    """Findings of the doctor, and the repairs it made."""

    findings: list[Finding] = field(default_factory=list)
    repairs: list[Finding] = field(default_factory=list)

    @property
    def faults(self) -> list[Finding]:
        """The findings that are faults."""
        return [finding for finding in self.findings if finding.mark is Mark.FAULT]


def diagnose(around: Surroundings, *, fix: bool, show: Show, show_repairs: Show) -> Diagnosis:
    """Check every link; with `fix`, make the safe repairs and check again. `show` and `show_repairs` print each."""
    diagnosis = Diagnosis()
    around = around.refreshed()
    for links in STAGES:
        findings = examine(links, around)
        if fix and any(finding.fix for finding in findings):
            repairs = repaired(findings)
            show_repairs(repairs)
            diagnosis.repairs += repairs
            around = around.refreshed()
            touched = {finding.link for finding in repairs}
            findings = _replaced(findings, examine([link for link in links if link.name in touched], around))
        show(findings)
        diagnosis.findings += findings
        around = around.with_broken(finding.link for finding in diagnosis.faults)
        if DAEMON in links:
            around = around.refreshed()
    return diagnosis


def _replaced(findings: list[Finding], again: list[Finding]) -> list[Finding]:
    """Replace the findings of links that were checked again by the new ones."""
    touched = {finding.link for finding in again}
    result: list[Finding] = []
    for finding in findings:
        if finding.link not in touched:
            result.append(finding)
        elif not any(one.link == finding.link for one in result):
            result += [new for new in again if new.link == finding.link]
    return result
