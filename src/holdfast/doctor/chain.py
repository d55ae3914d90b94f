"""The whole chain, from the installation to the chats: which links there are, and in which order they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from holdfast.doctor import agents, daemon, hooks, installation, registration, store, work
from holdfast.doctor.examination import Link, examine, repaired
from holdfast.doctor.findings import Finding, Mark
from holdfast.doctor.surroundings import Surroundings

DAEMON = Link("daemon", daemon.check_daemon)
STAGES: tuple[tuple[Link, ...], ...] = (
    (
        Link("installation", installation.check_installation),
        Link("home", installation.check_home),
    ),
    (
        Link("key", installation.check_key),
        Link("socket", daemon.check_socket),
        Link("store", store.check_store),
    ),
    (DAEMON,),
    # By itself: what is measured here is what an agent waits for.
    (Link("relay", registration.check_relay),),
    (
        Link("losses", store.check_losses),
        Link("http", daemon.check_http),
        Link("loops", work.check_background),
        Link("mcp server", registration.check_registration),
        Link("hooks", hooks.check_hooks),
        Link("agent", agents.check_agent),
        Link("transcripts", agents.check_transcripts),
        Link("serena", agents.check_serena),
        Link("teams", work.check_teams),
        Link("queue", work.check_queue),
        Link("telegram", work.check_telegram),
        Link("chats", work.check_chats),
    ),
)
"""Each stage stands on the one before; within a stage all links are looked at at the same time."""

Show = Callable[[Iterable[Finding]], None]


@dataclass(slots=True)
class Diagnosis:
    """What the doctor found, and what it did about it."""

    findings: list[Finding] = field(default_factory=list)
    repairs: list[Finding] = field(default_factory=list)

    @property
    def faults(self) -> list[Finding]:
        """What is broken."""
        return [finding for finding in self.findings if finding.mark is Mark.FAULT]


def diagnose(around: Surroundings, *, fix: bool, show: Show, told: Show) -> Diagnosis:
    """Look at every link; with `fix`, make the safe repairs and look again. `show` and `told` get each as it comes."""
    diagnosis = Diagnosis()
    around = around.looked_again()
    for links in STAGES:
        findings = examine(links, around)
        if fix and any(finding.fix for finding in findings):
            repairs = repaired(findings)
            told(repairs)
            diagnosis.repairs += repairs
            around = around.looked_again()
            touched = {finding.link for finding in repairs}
            findings = _replaced(findings, examine([link for link in links if link.name in touched], around))
        show(findings)
        diagnosis.findings += findings
        around = around.knowing(finding.link for finding in diagnosis.faults)
        if DAEMON in links:
            around = around.looked_again()
    return diagnosis


def _replaced(findings: list[Finding], again: list[Finding]) -> list[Finding]:
    """The findings with those of links that were looked at again in the place of their first ones."""
    touched = {finding.link for finding in again}
    result: list[Finding] = []
    for finding in findings:
        if finding.link not in touched:
            result.append(finding)
        elif not any(one.link == finding.link for one in result):
            result += [new for new in again if new.link == finding.link]
    return result
