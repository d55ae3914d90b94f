"""Teams for people: asking, waiting, looking and choosing at a terminal, with the echo agent in real processes."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.agents.echo import offered, registered
from tests.agents.teams_world import write_teams
from tests.installation import HOLDFAST, PATIENCE, Installation, wait_until
from tests.process.agent import Agent
from tests.process.hooks import call_hook, left_behind, starts

KATHMANDU = "Asia/Kathmandu"
"""5:45 ahead: no other offset could be taken for it."""
LAST_USED = 1_790_000_000


@pytest.fixture
def company(embedded: Installation, tmp_path: Path) -> Installation:
    """Two teams with the echo agent, and no daemon yet."""
    embedded.settings |= {**offered(), "HOME": str(tmp_path), "TZ": KATHMANDU}
    embedded.settings.pop("CLAUDE_CONFIG_DIR", None)
    for name in ("web", "api"):
        (tmp_path / name / "src").mkdir(parents=True)
    teams = {name: {"project": str(tmp_path / name), "agent": "echo"} for name in ("web", "api")}
    teams["api"]["description"] = "The public API"
    with registered():
        write_teams(embedded, {}, teams)
    return embedded


def open_asks(holdfast: Installation) -> list[dict[str, str]]:
    return list(holdfast._ask("teams-asks")["asks"])


def test_a_question_at_the_terminal_starts_a_daemon_and_prints_the_answer(company: Installation) -> None:
    assert company.daemon() is None
    told = company.run("teams", "ask", "api", "Is anybody there?")
    assert told.returncode == 0 and "echo 1:" in told.stdout and "> Is anybody there?" in told.stdout, told
    again = json.loads(company.run("teams", "ask", "api", "-", "--json", stdin="And\nnow?").stdout)
    assert again["status"] == "answered" and "echo 2:" in again["response"] and "> now?" in again["response"]
    as_web = json.loads(company.run("teams", "ask", "api", "--from", "web", "as web", "--json").stdout)
    assert "echo 1: [Message from team web" in as_web["response"]
    company.run("stop")
    assert company.run("teams", "ask", "api", "stopped?").returncode == 0
    unknown = company.run("teams", "ask", "Api", "x")
    assert unknown.returncode == 1 and "there are: web, api. Did you mean api?" in unknown.stderr
    failed = company.run("teams", "ask", "api", "fail")
    assert failed.returncode == 1 and failed.stdout == "" and "E_AGENT_ERROR" in failed.stderr


def test_a_person_who_waits_gets_the_answer_though_the_daemon_is_killed_meanwhile(company: Installation) -> None:
    company.serve()
    with subprocess.Popen(
        [str(HOLDFAST), "teams", "ask", "api", "sleep 4"],
        env=company.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as asking:
        wait_until(lambda: [one["status"] for one in open_asks(company)] == ["running"], "the turn is under way")
        killed = company.kill_daemon()
        company.serve(another_than=killed)
        answer, told = asking.communicate(timeout=2 * PATIENCE)
    assert asking.returncode == 0 and "> sleep 4" in answer, (answer, told)
    assert "waiting for it" in told and "asked again" in told, told
    assert len(json.loads(company.run("teams", "history", "api", "--json").stdout)["asks"]) == 1


def test_ctrl_c_says_how_to_go_on_waiting_or_to_cancel_and_both_work(company: Installation) -> None:
    company.serve()
    (first,) = interrupted(company, "sleep 20")
    (known,) = open_asks(company)
    assert (known["askId"], known["status"]) == (first, "running"), "the work goes on"
    assert company.run("teams", "wait", first[:8], "--timeout", "0.1").returncode == 1
    assert company.run("teams", "cancel", first[:8]).stdout == "Cancelled.\n"
    ended = company.run("teams", "wait", first)
    assert ended.returncode == 1 and "was cancelled" in ended.stderr and open_asks(company) == []
    late = company.run("teams", "ask", "api", "second", "--timeout", "0")
    (second,) = re.findall(r"teams wait (\S+)`", late.stderr)
    assert late.returncode == 1 and late.stdout == ""
    answered = company.run("teams", "wait", second)
    assert answered.returncode == 0 and "> second" in answered.stdout
    already = company.run("teams", "cancel", second)
    assert already.returncode == 1 and "it was answered before" in already.stdout


def interrupted(holdfast: Installation, question: str) -> list[str]:
    """Ask at a terminal, and type Ctrl-C once progress is shown; the ids that it says to go on with."""
    ours, theirs = pty.openpty()

    def at_terminal() -> None:
        os.login_tty(theirs)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever runs the tests in the background may ignore it

    command = [str(HOLDFAST), "teams", "ask", "api", question]
    asking = subprocess.Popen(command, env=holdfast.environment(), preexec_fn=at_terminal)
    os.close(theirs)
    shown = b""
    typed = False
    try:
        while select.select([ours], [], [], PATIENCE)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # how Linux tells that the other end is closed
                break
            if not piece:
                break
            shown += piece
            if not typed and re.search(rb"\d s  api is working on it", shown):
                os.write(ours, b"\x03")
                typed = True
    finally:
        os.close(ours)
    text = shown.decode()
    assert asking.wait(PATIENCE) == 130 and typed, text
    waits, cancels = re.findall(r"teams wait (\S+)`", text), re.findall(r"teams cancel (\S+)`", text)
    assert waits == cancels and "not cancelled" in text, text
    return waits


def test_status_and_history_are_tables_with_the_times_of_the_persons_clock(company: Installation) -> None:
    company.serve()
    assert company.run("teams", "ask", "api", "What is\nthere?").returncode == 0
    company.run("teams", "ask", "web", "sleep 60", "--timeout", "0")
    (ask,) = open_asks(company)
    here = datetime.fromisoformat(ask["askedAt"]).astimezone(ZoneInfo(KATHMANDU))
    assert here.utcoffset() != datetime.now(UTC).utcoffset()
    heading, *teams = [line.split() for line in company.run("teams", "status").stdout.splitlines()]
    assert heading == ["TEAM", "PROCESSES", "BUSY", "WAITING", "RUNNING", "APPROVALS", "STATE"]
    assert [team[0] for team in teams[:2]] == ["web", "api"] and teams[1][-1] == "ok"
    assert teams[-1] == [
        ask["askId"][:8],
        f"{here:%Y-%m-%d}",
        f"{here:%H:%M}",
        ask["status"],
        "you",
        "web",
        "sleep",
        "60",
    ]
    only = company.run("teams", "status", "api")
    assert "web" not in only.stdout

    told = json.loads(company.run("teams", "history", "api", "--json").stdout)
    shown = company.run("teams", "history", "api").stdout.splitlines()
    asked = datetime.fromisoformat(told["asks"][0]["askedAt"]).astimezone(ZoneInfo(KATHMANDU))
    assert shown[0].startswith(f"{asked:%Y-%m-%d %H:%M}  you") and shown[1:3] == ["  | What is", "  | there?"]
    listed = [line.split() for line in company.run("teams", "history").stdout.splitlines()]
    assert listed[0][:3] == ["FROM", "TO", "MESSAGES"] and {row[1] for row in listed[1:]} == {"api", "web"}
    missing = company.run("teams", "history", "api", "--from", "web")
    assert missing.returncode == 1 and "`holdfast teams history` lists them" in missing.stderr
    assert company.run("teams", "cancel", ask["askId"]).returncode == 0


def test_after_reset_the_next_question_begins_a_fresh_conversation(company: Installation) -> None:
    company.serve()
    for turn in (1, 2):
        assert f"echo {turn}:" in company.run("teams", "ask", "api", "go on").stdout
    assert "fresh conversation" in company.run("teams", "reset", "api").stdout
    assert "echo 1:" in company.run("teams", "ask", "api", "go on").stdout


@pytest.fixture
def folders(embedded: Installation, tmp_path: Path) -> Path:
    """Somebody who used Claude Code by hand in three projects, one of which is gone; no team yet."""
    embedded.settings |= {"HOME": str(tmp_path), "TZ": KATHMANDU}
    for name, age in (("old shop", 200), ("shop", 100), ("gone", 0)):
        project = tmp_path / "work" / name
        project.mkdir(parents=True)
        folder = tmp_path / ".claude" / "projects" / re.sub("[^A-Za-z0-9]", "-", str(project))
        folder.parent.mkdir(parents=True, exist_ok=True)
        transcript = left_behind(folder, project)
        os.utime(transcript, (LAST_USED - age, LAST_USED - age))
    (tmp_path / "work" / "gone").rmdir()
    return tmp_path / "work"


def teams_of(holdfast: Installation) -> dict[str, str]:
    listed = json.loads(holdfast.run("teams", "list", "--json").stdout)["teams"]
    return {team["name"]: team["project"] for team in listed}


def test_a_person_chooses_teams_from_the_projects_in_which_they_used_their_agent(
    embedded: Installation, folders: Path
) -> None:
    unasked = embedded.run("teams", "add", stdin="1\n")
    assert unasked.returncode == 1 and "Choose in a terminal" in unasked.stdout and teams_of(embedded) == {}
    rows = [line.split() for line in unasked.stdout.splitlines()]
    assert [row[:2] for row in rows[1:3]] == [["1", "shop"], ["2", "old-shop"]], "the last used first"
    used = datetime.fromtimestamp(LAST_USED - 100, ZoneInfo(KATHMANDU))
    assert rows[1][2:4] == f"{used:%Y-%m-%d %H:%M}".split(), "in the person's own time"
    assert embedded.at_terminal("teams", "add", answer="7").returncode == 1 and teams_of(embedded) == {}
    assert embedded.at_terminal("teams", "add", answer="").returncode == 1 and teams_of(embedded) == {}
    added = embedded.at_terminal("teams", "add", answer="2, 1")
    assert added.returncode == 0, added.stdout
    assert teams_of(embedded) == {"shop": str(folders / "shop"), "old-shop": str(folders / "old shop")}
    assert "No projects" in embedded.run("teams", "add").stdout, "each of them is a team now"


def test_a_project_folder_is_asked_by_its_name_once_a_person_allows_it(embedded: Installation, folders: Path) -> None:
    refused = embedded.run("teams", "ask", "shop", "x")
    assert refused.returncode == 1 and "no team" in refused.stderr and teams_of(embedded) == {}
    refused = embedded.at_terminal("teams", "ask", "shop", "x", "--timeout", "0", answer="no")
    assert refused.returncode == 1 and teams_of(embedded) == {}
    allowed = embedded.at_terminal("teams", "ask", "shop", "x", "--timeout", "0", answer="yes")
    assert str(folders / "shop") in allowed.stdout and "teams cancel" in allowed.stdout, allowed.stdout
    assert teams_of(embedded) == {"shop": str(folders / "shop")}
    (asked,) = re.findall(r"teams cancel (\S+)`", allowed.stdout)
    embedded.run("teams", "cancel", asked)


def test_in_a_subdirectory_of_a_teams_project_the_team_is_known(company: Installation, tmp_path: Path) -> None:
    company.serve()
    below = tmp_path / "web" / "src"
    with Agent(company, below, session="below") as agent:
        listed = {tool["name"] for tool in agent.request("tools/list")["tools"]}
        assert {"teams_ask", "teams_status", "send_message"} <= listed
        answer = agent.call("teams_ask", team="api", question="Who asks?", timeout=int(PATIENCE * 1000))
        assert "[Message from team web" in answer["response"]
    told = starts(company, below, left_behind(tmp_path / "transcripts", below, "Look."))["context"]
    assert "This team asked api" in told, told


def test_an_agent_in_a_teams_project_is_told_whom_it_can_ask(company: Installation, tmp_path: Path) -> None:
    company.serve()
    folder = tmp_path / "transcripts"
    told = starts(company, tmp_path / "web", left_behind(folder, tmp_path / "web", "Look."))["context"]
    assert 'This project is team web. It can ask api ("The public API"). (more: teams_ask, teams_status)' in told, told
    assert "It can ask" not in starts(company, tmp_path, left_behind(folder, tmp_path, "Look."))["context"]
    with Agent(company, tmp_path / "web", session="web") as agent:
        refused = agent.refused("teams_ask", team="apis", question="x")
        assert "there are: web, api" in refused and "Did you mean api?" in refused
        assert {one["team"] for one in agent.call("teams_status")["teams"]} == {"web", "api"}


def test_names_of_teams_alone_are_no_earlier_work(company: Installation, tmp_path: Path) -> None:
    company.serve()
    saved = json.loads(company.run("saved", "--all", "--json").stdout)
    fresh = tmp_path / "transcripts" / "0197f9c1-0000-4000-8000-000000000001.jsonl"
    assert "It can ask api" in starts(company, tmp_path / "web", fresh)["context"]
    assert json.loads(company.run("saved", "--all", "--json").stdout) == saved
    assert call_hook(company, "SessionStart", tmp_path / "web", fresh, source="clear") == {}
