"""`holdfast protocol check`, `show`, `init` and `validate`: the phases and gates of a project's sessions."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import Any

from holdfast.agents.project_settings import ProjectSettings
from holdfast.cli import protocol_init
from holdfast.cli.common import add_home, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.errors import BadInput, HoldfastError
from holdfast.git.gate import why_off
from holdfast.identity.worktree import Worktree, worktree_of
from holdfast.protocol.model import Check, CheckKind, Gate
from holdfast.protocol.project.settings import Enforcement, ProjectProtocol, read_project
from holdfast.teams.config_fields import shown
from holdfast.text.terminal import say

EXIT_STATUS = {"PASS": 0, "FAIL": 1}
NO_RUN_STATUS = 2
"""Exit status if there is no run, or no daemon to ask."""
MAX_SHOWN = 400


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    protocol = commands.add_parser("protocol", help="the phases and gates of a project: check, show, init, validate")
    verbs = protocol.add_subparsers(metavar="<what>", title="what", required=True)

    check = verbs.add_parser("check", help="show every fault of a project's protocol (exit status 1 if there is one)")
    add_directory(check)
    check.set_defaults(run=run_check, for_agents=True)

    show = verbs.add_parser("show", help="show the phases, the gates between them and what verifies each")
    add_directory(show)
    show.add_argument("--json", action="store_true", help="print it as JSON")
    add_home(show)
    show.set_defaults(run=run_show, for_agents=True)

    protocol_init.add_to(verbs)

    validate = verbs.add_parser(
        "validate", help="verify every gate of the running session: exit status 0 met, 1 not met, 2 no session"
    )
    add_directory(validate)
    validate.add_argument(
        "--pre-commit", action="store_true", help="verify only the gates that must be met before a commit"
    )
    validate.add_argument("--json", action="store_true", help="print the result as JSON")
    add_home(validate)
    validate.set_defaults(run=run_validate, for_agents=True)


def add_directory(parser: argparse.ArgumentParser) -> None:
    """Add the DIR argument."""
    parser.add_argument("directory", metavar="DIR", nargs="?", default=".", help="in the project (default: here)")


def worktree_at(options: argparse.Namespace) -> Worktree:
    """Return the worktree of a command's DIR."""
    worktree = worktree_of(Path(options.directory).expanduser())
    if worktree is None:
        raise BadInput("DIR", f"{shown(options.directory)} is not a directory")
    return worktree


def run_check(options: argparse.Namespace) -> int:
    """Show the faults of a project's protocol."""
    project = read_project(worktree_at(options).path)
    for fault in project.faults:
        say(shown(str(fault), MAX_SHOWN))
    if project.faults:
        return 1
    source = "from .holdfast/protocol.toml" if project.configured else "without a protocol.toml"
    say(f"The protocol {project.protocol.name} is valid ({source}): {len(project.protocol.gates)} gates.")
    return 0


def run_show(options: argparse.Namespace) -> int:
    """Show the phases and gates."""
    worktree = worktree_at(options)
    project = read_project(worktree.path)
    trusted = is_trusted(options, worktree, project)
    if options.json:
        say(json.dumps(_as_json(project, trusted, why_off(worktree.path))))
        return 0
    say(
        f"protocol {project.protocol.name}, enforcement {project.enforcement.value},"
        f" started by the {project.started_by}, {'trusted' if trusted else 'not trusted'}"
    )
    if project.enforcement is Enforcement.ENFORCE:
        say(shown(protocol_init.gate_line(worktree.path), MAX_SHOWN))
    say(f"{'PHASE':24} {'GATE':24} {'NEXT PHASE':24} {'LEVEL':8} {'BLOCKS':6} VERIFIED BY")
    for step in project.protocol.transitions:
        gate = step.gate
        say(
            f"{shown(step.source, 24):24} {shown(gate.name, 24):24} {shown(step.target, 24):24} {gate.level.value:8}"
            f" {'yes' if gate.blocking else 'no':6} {shown(_checks(gate, trusted), MAX_SHOWN)}"
        )
    for fault in project.faults:
        say(f"fault: {shown(str(fault), MAX_SHOWN)}")
    return 0


def run_validate(options: argparse.Namespace) -> int:
    """Verify the gates of the running session."""
    try:
        worktree = worktree_at(options)
        args = {"root": str(worktree.path), "pre_commit": options.pre_commit}
        result = ask_or_do(settings_of(options), "protocol-validate", args, show_progress)
    except HoldfastError as error:
        result = {"status": "NONE", "gates": [], "message": str(error)}
    if options.json:
        say(json.dumps(result))
    else:
        for gate in result["gates"]:
            say(f"{gate['status']:8} {shown(gate['message'], MAX_SHOWN)}")
            for step in gate.get("recovery", ()) if gate["blocking"] else ():
                say(f"         {shown(step, MAX_SHOWN)}")
        say(shown(result["message"], MAX_SHOWN))
    return EXIT_STATUS.get(result["status"], NO_RUN_STATUS)


def is_trusted(
    options: argparse.Namespace, worktree: Worktree, project: ProjectProtocol, brought: ProjectSettings | None = None
) -> bool:
    """Return whether the owner trusts the project as it is now, including its agent settings if given."""
    if not project.digest:
        return False
    answer = ask_or_do(settings_of(options), "trusted", {"root": worktree.root}, show_progress)
    for_agents = brought is None or not brought.digest or answer.get("agent_digest") == brought.digest
    return for_agents and bool(answer.get("digest") == project.digest)


def _checks(gate: Gate, trusted: bool) -> str:
    return "; ".join(_check(check, trusted) for check in gate.checks) or "nothing"


def _check(check: Check, trusted: bool) -> str:
    if check.kind is CheckKind.COMMAND:
        if not check.argv:
            return "command: none configured"
        return f"command: {shlex.join(check.argv)} ({'trusted' if trusted else 'not run until `holdfast trust`'})"
    what = ", ".join(check.paths or check.names)
    return f"{check.kind.value}: {what}" if what else check.kind.value


def _as_json(project: ProjectProtocol, trusted: bool, gate_off: str | None) -> dict[str, Any]:
    return {
        "protocol": project.protocol.name,
        "enforcement": project.enforcement.value,
        "gate_off": gate_off,
        "start": project.started_by,
        "configured": project.configured,
        "trusted": trusted,
        "faults": [{"path": fault.path, "line": fault.line, "message": fault.message} for fault in project.faults],
        "gates": [
            {
                "from": step.source,
                "gate": step.gate.name,
                "to": step.target,
                "requirement_level": step.gate.level.value,
                "blocking": step.gate.blocking,
                "checks": [
                    {
                        "kind": check.kind.value,
                        **({"paths": list(check.paths)} if check.paths else {}),
                        **({"names": list(check.names)} if check.names else {}),
                        **({"command": list(check.argv), "timeout": check.timeout_s} if check.argv else {}),
                    }
                    for check in step.gate.checks
                ],
                "recovery": list(step.gate.recovery),
            }
            for step in project.protocol.transitions
        ],
    }
