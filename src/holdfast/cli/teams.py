"""`holdfast teams`: add, remove, confirm, list and check the teams of teams.json; adopt sessions; show figures.

Asking them, and what becomes of that, is in `team_asks.py`.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from holdfast.agents.registry import AGENTS
from holdfast.cli import team_asks
from holdfast.cli.common import add_home, agreed, described_parser, is_person, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.cli.table import show_table
from holdfast.config import Settings
from holdfast.errors import BadInput
from holdfast.teams.config import TeamsConfig
from holdfast.teams.config_fields import from_home, shown
from holdfast.teams.config_file import TeamsFile
from holdfast.teams.confirmation import rights_of
from holdfast.teams.project_folders import ProjectFolder, project_folders
from holdfast.teams.project_paths import true_spelling
from holdfast.teams.team import name_for
from holdfast.teams.views import by_reason
from holdfast.text.terminal import quoted_block, say
from holdfast.times import iso, local

MAX_SHOWN_PATH = 100
MAX_FOLDERS = 30
ADD = """\
Add a team: a name under which the agent of a project can be asked. Without a NAME and a project it lists the projects
in which you used an agent, the last used first, and asks which of them are to be teams.

examples:
  holdfast teams add                                        choose from your projects
  holdfast teams add backend --project ~/shop/backend --description "The API"
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    teams = commands.add_parser("teams")
    verbs = teams.add_subparsers(metavar="<what>", title="what", required=True)
    team_asks.add_to(verbs)

    add = described_parser(verbs, "add", ADD, "add a team, or choose from the projects that you used an agent in")
    add.add_argument("name", metavar="NAME", nargs="?", help="1 to 64 of A-Z a-z 0-9 . _ - (default: the folder's)")
    add.add_argument("--project", metavar="DIR", help="where its agent works (default with a NAME: here)")
    add.add_argument("--description", metavar="TEXT", help="what other teams may ask it")
    add.add_argument("--model", metavar="MODEL", help="the agent's model (default: its own)")
    add.add_argument("--color", metavar="#RRGGBB", help="its color in programs that show teams (GET /api/teams)")
    add.add_argument(
        "--skip-permissions",
        action="store_true",
        help="let its agent do everything without asking; only where it can do no harm",
    )
    add.set_defaults(run=run_add)

    found = verbs.add_parser("found", help="list sessions on disk in the teams' projects that can be adopted")
    found.add_argument("--json", action="store_true", help="print them as JSON")
    add_home(found)
    found.set_defaults(run=run_found)

    adopt = verbs.add_parser("adopt", help="make a session on disk the conversation of two teams")
    adopt.add_argument("team", metavar="TEAM", help="the team whose agent's session it is")
    adopt.add_argument("session", metavar="SESSION", help="the session's id")
    adopt.add_argument("--from", dest="sender", metavar="TEAM", help="the asking team (default: somebody outside)")
    adopt.add_argument("--thread", metavar="NAME", help="as which thread (default: main)")
    add_home(adopt)
    adopt.set_defaults(run=run_adopt)

    stats = verbs.add_parser("stats", help="show messages, lifetimes, the most active pairs, tokens and cost")
    stats.add_argument("--json", action="store_true", help="print them as JSON")
    add_home(stats)
    stats.set_defaults(run=run_stats, for_agents=True)

    confirm = verbs.add_parser("confirm", help="show rights in teams.json that were changed, and confirm them")
    add_home(confirm)
    confirm.set_defaults(run=run_confirm)

    remove = verbs.add_parser("remove", help="remove a team from teams.json; its conversations stay stored")
    remove.add_argument("name", metavar="NAME", help="as `holdfast teams list` shows it")
    add_home(remove)
    remove.set_defaults(run=run_remove)

    listed = verbs.add_parser("list", help="show the teams")
    listed.add_argument("--json", action="store_true", help="print them as JSON")
    add_home(listed)
    listed.set_defaults(run=run_list, for_agents=True)

    check = verbs.add_parser("check", help="show every fault with its repair (exit status 1 if one keeps a team away)")
    check.add_argument("--json", action="store_true", help="print them as JSON")
    add_home(check)
    check.set_defaults(run=run_check, for_agents=True)


def run_found(options: argparse.Namespace) -> int:
    """List sessions that can be adopted."""
    sessions = ask_or_do(settings_of(options), "teams-found", {}, show_progress)["sessions"]
    rows = [(one["team"], one["sessionId"], local(one["modifiedAt"]), one["title"]) for one in sessions]
    if options.json:
        say(json.dumps(sessions))
    elif rows:
        show_table([("TEAM", "SESSION", "MODIFIED", "TITLE"), *rows], whole=("SESSION", "MODIFIED"))
    else:
        say("There are no sessions on disk to adopt.")
    return 0


def run_adopt(options: argparse.Namespace) -> int:
    """Adopt a session."""
    args = {"team": options.team, "session": options.session, "from": options.sender, "thread": options.thread}
    adopted = ask_or_do(settings_of(options), "teams-adopt", args, show_progress)["conversation"]
    say(f"{adopted.get('fromTeam', 'outside')} → {adopted['toTeam']} continues in session {adopted['sessionId']}.")
    return 0


def run_stats(options: argparse.Namespace) -> int:
    """Show the figures of all teams."""
    figures = ask_or_do(settings_of(options), "teams-stats", {}, show_progress)
    if options.json:
        say(json.dumps(figures))
        return 0
    names = ("team", "asks", "answered", "failed", "input_tokens", "output_tokens")
    rows = [(*(str(team[name]) for name in names), f"{team['cost_usd']:.2f}") for team in figures["teams"]]
    show_table([("TEAM", "ASKS", "ANSWERED", "FAILED", "TOKENS IN", "OUT", "USD"), *rows])
    for pair in figures["pairs"]:
        say(f"{pair['from'] or 'outside'} → {pair['to']}: {pair['messages']} messages")
    say(
        f"{figures['conversations']} conversations, {figures['messages_per_conversation']} messages each,"
        f" {figures['mean_lifetime_ms'] / 3_600_000:.1f} h on average"
    )
    return 0


def run_add(options: argparse.Namespace) -> int:
    """Add a team, or several that a person chooses."""
    settings = settings_of(options)
    file = TeamsFile(settings.home)
    if options.name is None and options.project is None:
        chosen = _chosen(settings, project_folders(os.environ, file.projects()))
    else:
        project = true_spelling(Path(os.path.realpath(from_home(options.project or "."))))
        name = options.name or name_for(project, file.projects())
        if name is None:
            raise BadInput("NAME", "is required: the folder's name cannot be a team's")
        chosen = [(name, project, None)]
    for name, project, agent in chosen:
        team = file.add(
            name,
            project,
            agent=agent,
            description=options.description,
            model=options.model,
            skip_permissions=options.skip_permissions,
            color=options.color,
        )
        say(f"Team {team.name} works in {shown(str(team.project), MAX_SHOWN_PATH)}.")
        if is_person(settings.home):
            file.confirm([team])
        elif team in file.waiting():
            say("Its rights take effect once you run `holdfast teams confirm` in a terminal.")
        if (missing := AGENTS[team.agent].missing()) is not None:
            say(f"It cannot be asked yet. {missing}")
    return 0 if chosen else 1


def _chosen(settings: Settings, folders: Sequence[ProjectFolder]) -> list[tuple[str, Path, str | None]]:
    """Show projects in which a person used an agent, and ask which to make teams."""
    if not folders:
        say("No projects of an agent were found that are not teams. `holdfast teams add NAME --project DIR` adds one.")
        return []
    shown_ones = folders[:MAX_FOLDERS]
    rows = [
        (str(number), one.name, local(iso(one.used_at)), shown(str(one.project), MAX_SHOWN_PATH))
        for number, one in enumerate(shown_ones, 1)
    ]
    show_table([("", "NAME", "LAST USED", "PROJECT"), *rows])
    if not is_person(settings.home):
        say("Choose in a terminal, or add one: `holdfast teams add NAME --project DIR`.")
        return []
    numbers = input("Which of them may be asked? Numbers, such as 1 3; nothing for none: ").replace(",", " ").split()
    known = {str(number): one for number, one in enumerate(shown_ones, 1)}
    if strange := [number for number in numbers if number not in known]:
        raise BadInput("numbers", f"there is no {shown(strange[0])}; nothing was added")
    return [(known[number].name, known[number].project, known[number].agent) for number in dict.fromkeys(numbers)]


def run_confirm(options: argparse.Namespace) -> int:
    """Show changed rights and confirm them."""
    home = settings_of(options).home
    file = TeamsFile(home)
    waiting, settings, changed = file.waiting(), file.configured.settings, file.waiting_settings()
    if not waiting and not changed:
        say("No rights are waiting to be confirmed.")
        return 0
    if changed:
        say("All teams would have these settings:")
        print(quoted_block(_written(changed)))
    for team in waiting:
        say(f"Team {shown(team.name)} would have these rights:")
        print(quoted_block(_written(rights_of(team))))
    if not agreed(home, "confirm rights", "Confirm them?"):
        say("They were not confirmed.")
        return 1
    # Confirm exactly what was shown: a file that changed since has other rights.
    file.confirm(waiting, settings if changed else None)
    say("Confirmed.")
    return 0


def _written(rights: dict[str, Any]) -> str:
    return "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in rights.items())


def run_remove(options: argparse.Namespace) -> int:
    """Remove a team."""
    TeamsFile(settings_of(options).home).remove(options.name)
    say(f"Team {shown(options.name)} is removed. Its conversations stay stored.")
    return 0


def run_list(options: argparse.Namespace) -> int:
    """Show the teams, including those that cannot be served."""
    file = TeamsFile(settings_of(options).home)
    if options.json:
        say(json.dumps(_described(file.config)))
        return 0
    counts = dict.fromkeys((*file.config.teams, *file.config.refused), 0)
    for fault in file.config.faults:
        if fault.team is not None:
            counts[fault.team] += 1
    rows = [("NAME", "PROJECT", "AGENT", "FAULTS")]
    for name, count in counts.items():
        team = file.config.teams.get(name)
        project = shown(str(team.project), MAX_SHOWN_PATH) if team else "(not served)"
        rows.append((shown(name), project, team.agent if team else "-", str(count or "-")))
    if len(rows) > 1:
        show_table(rows)
    elif not file.config.faults:
        say("There are no teams yet. `holdfast teams add` lists projects to choose from.")
    if file.config.faults:
        say("`holdfast teams check` shows the faults and their repair.")
    return 0


def run_check(options: argparse.Namespace) -> int:
    """Show every fault: of teams.json, and of what its agents need."""
    file = TeamsFile(settings_of(options).home)
    config = file.config
    teams = ask_or_do(settings_of(options), "teams-status", {}, show_progress)["teams"] if config.teams else []
    faults = by_reason(teams, "fault")
    if options.json:
        of_file = [asdict(fault) for fault in config.faults]
        say(json.dumps({"file": of_file, "agents": faults, "settings": by_reason(teams, "settings")}))
        return 1 if config.errors or faults else 0
    for fault in config.faults:
        say(f"{'warning' if fault.warning else 'FAULT':8} {fault}")
    for mark, reasons in (("FAULT", faults), ("warning", by_reason(teams, "settings"))):
        for why, names in reasons.items():
            say(f"{mark:8} {shown(', '.join(names), MAX_SHOWN_PATH)}: {why}")
    total, broken = len(config.teams) + len(config.refused), sum(map(len, faults.values()))
    say(f"{file.path}: {len(config.teams) - broken} of {total} teams can be served.")
    return 1 if config.errors or faults else 0


def _described(config: TeamsConfig) -> dict[str, Any]:
    """Return the effective settings as JSON. Of environment variables only the names, because they may hold tokens."""
    teams = []
    for name in (*config.teams, *config.refused):
        team = config.teams.get(name)
        described: dict[str, Any] = {"name": name, "served": team is not None}
        if team is not None:
            described |= {
                "project": str(team.project),
                "description": team.description,
                "agent": team.agent,
                "model": team.model,
                "skipPermissions": team.skip_permissions,
                "policy": team.policy,
                "color": team.color,
                "machine": team.machine,
                "env": sorted(team.env),
            }
        described["faults"] = [asdict(fault) for fault in config.faults if fault.team == name]
        teams.append({key: value for key, value in described.items() if value not in (None, "", [])})
    return {"teams": teams, "faults": [asdict(fault) for fault in config.faults if fault.team is None]}
