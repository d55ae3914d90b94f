"""`holdfast teams` used in ways that nobody meant: long and unreadable questions, odd times, broken files, half ids."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import termios
from pathlib import Path

import pytest
from tests.agents.echo import offered, registered
from tests.agents.teams_world import write_teams
from tests.installation import HOLDFAST, PATIENCE, Installation, wait_until

from holdfast.teams.model import MAX_TEXT

WITHOUT_OVERRIDE = ["--bounding-set", "-dac_override,-dac_read_search"]
"""What makes root obey the permissions of files, as everybody else does."""


@pytest.fixture
def company(embedded: Installation, tmp_path: Path) -> Installation:
    """Two teams with the echo agent, each below a folder of its own, and no daemon yet."""
    embedded.settings |= {**offered(), "HOME": str(tmp_path)}
    for name in ("web", "api"):
        (tmp_path / f"of {name}" / name).mkdir(parents=True)
    _write(embedded, tmp_path, "web", "api")
    return embedded


def _write(holdfast: Installation, place: Path, *names: str) -> None:
    teams = {name: {"project": str(place / f"of {name}" / name), "agent": "echo"} for name in names}
    with registered():
        write_teams(holdfast, {"maxProcesses": 1}, teams)


def test_a_question_may_have_as_much_text_as_the_docs_say_and_what_is_longer_is_refused(company: Installation) -> None:
    told = company.run("teams", "ask", "api", "-", "--json", stdin="\x01" * MAX_TEXT)
    assert json.loads(told.stdout)["status"] == "answered", told.stderr
    for length in (MAX_TEXT + 1, 9 * MAX_TEXT):
        told = company.run("teams", "ask", "api", "-", stdin="x" * length)
        assert told.returncode == 1 and told.stderr.startswith("holdfast: ") and told.stderr.count("\n") == 1, told
        assert "at most 1 MiB" in told.stderr or "the limit is" in told.stderr, told


def test_a_question_that_is_not_utf8_is_refused_and_not_asked(company: Installation) -> None:
    for words, stdin in ((["-"], b"caf\xe9"), ([b"caf\xe9"], b"")):
        for locale in ("C", "C.UTF-8"):
            told = subprocess.run(
                [str(HOLDFAST), "teams", "ask", "api", *words],
                env={**company.environment(), "LC_ALL": locale},
                input=stdin,
                capture_output=True,
                timeout=2 * PATIENCE,
            )
            assert (told.returncode, told.stderr) == (1, b"holdfast: QUESTION: must be UTF-8.\n"), told


@pytest.mark.parametrize("seconds", ["inf", "nan", "-3", "soon"])
def test_a_time_that_nobody_can_wait_is_refused_before_anything_is_asked(company: Installation, seconds: str) -> None:
    told = company.run("teams", "ask", "api", "hello", "--timeout", seconds)
    assert told.returncode == 2 and f"{seconds} is not a number of seconds" in told.stderr, told
    assert "no conversations yet" in company.run("teams", "history").stdout


def test_the_beginning_of_an_id_is_enough_also_when_the_question_was_answered(company: Installation) -> None:
    asked = json.loads(company.run("teams", "ask", "api", "hello", "--json").stdout)["askId"]
    told = company.run("teams", "wait", asked[:8])
    assert told.returncode == 0 and "> hello" in told.stdout, told
    assert "it was answered before" in company.run("teams", "cancel", asked[:4]).stdout
    assert f'no ask "{asked[:3]}"' in company.run("teams", "wait", asked[:3]).stderr
    assert 'no ask "%%%%"' in company.run("teams", "wait", "%%%%").stderr


def test_a_person_waits_no_longer_than_they_said_also_without_a_daemon(company: Installation) -> None:
    company.serve()
    with subprocess.Popen(
        [str(HOLDFAST), "teams", "ask", "api", "sleep 600", "--timeout", "3"],
        env=company.environment(),
        stderr=subprocess.PIPE,
        text=True,
    ) as asking:
        wait_until(lambda: bool(company._ask("teams-asks")["asks"]), "it was asked")
        (ask,) = company._ask("teams-asks")["asks"]
        company.kill_daemon()
        _, told = asking.communicate(timeout=PATIENCE)
    assert asking.returncode == 1 and f"Go on waiting: `holdfast teams wait {ask['askId']}`" in told, told


def test_history_says_why_a_question_failed(company: Installation) -> None:
    company.run("teams", "ask", "api", "fail")
    shown = company.run("teams", "history", "api").stdout
    assert "api: failed E_AGENT_ERROR\n  | The agent reported an error" in shown, shown


def test_status_names_what_is_wrong_with_teams_json_and_shows_asks_of_removed_teams(
    company: Installation, tmp_path: Path
) -> None:
    company.serve()
    company.run("teams", "ask", "api", "sleep 600", "--timeout", "0")
    (tmp_path / "of web").rename(tmp_path / "gone")
    _write(company, tmp_path, "web", "api")
    shown = company.run("teams", "status").stdout
    assert "api " in shown and "web.project: " in shown and "does not exist" in shown, shown
    (company.home / "teams.json").write_text('{"teams": {')
    assert 'Fault in teams.json: "teams.json: is not JSON' in company.run("teams", "status").stdout
    (company.home / "teams.json").unlink()
    shown = company.run("teams", "status").stdout
    assert "TEAM " not in shown and "sleep 600" in shown, shown


def test_status_says_in_a_column_how_many_approvals_each_team_waits_for(company: Installation, tmp_path: Path) -> None:
    teams = {name: {"project": str(tmp_path / f"of {name}" / name), "agent": "echo"} for name in ("web", "api")}
    teams["api"]["policy"] = "ask"
    with registered():
        write_teams(company, {}, teams)
    company.serve()
    company.run("teams", "ask", "api", "permission Bash", "--timeout", "0")

    def waits() -> bool:
        return "api: Bash" in company.run("approve").stdout

    wait_until(waits, "a permission is waited for")
    header, web, api, *rest = company.run("teams", "status").stdout.splitlines()
    column = header.split().index("APPROVALS")
    assert (web.split()[column], api.split()[column]) == ("0", "1"), (header, web, api)
    assert any(line.startswith("api waits to be allowed") and "`holdfast approve " in line for line in rest), rest


@pytest.mark.parametrize("columns", [80, 40])
def test_progress_stays_on_one_line_of_the_terminal(company: Installation, columns: int) -> None:
    company.serve()
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    command = [str(HOLDFAST), "teams", "ask", "api", "--thread", "a thread with a long name", "sleep 6"]
    shown = b""
    # A test runner may say how wide its own terminal is.
    env = {name: value for name, value in company.environment().items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        while select.select([ours], [], [], PATIENCE)[0]:
            try:
                shown += os.read(ours, 65536)
            except OSError:  # how Linux tells that the other end is closed
                break
    os.close(ours)
    progress = [line for line in shown.decode().split("\r") if "working on it"[: columns // 8] in line]
    assert progress and all(len(line) < columns for line in progress), progress


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may read everything")
@pytest.mark.parametrize("closed", ["of api", "of api/api"], ids=["its parent", "itself"])
def test_a_project_that_cannot_be_read_is_named_and_holds_up_no_other_team(
    company: Installation, tmp_path: Path, closed: str
) -> None:
    if os.geteuid() == 0:
        company.daemon_command = ["setpriv", *WITHOUT_OVERRIDE, *company.daemon_command]
    company.serve()
    company.run("teams", "ask", "web", "sleep 600", "--timeout", "0")
    wait_until(lambda: bool(company._ask("teams-asks")["asks"][0]["status"] == "running"), "the only place is taken")
    company.run("teams", "ask", "api", "in the queue", "--timeout", "0")
    company.run("teams", "ask", "web", "next", "--timeout", "0", "--thread", "other")
    (tmp_path / closed).chmod(0)
    try:
        told = company.run("teams", "ask", "api", "hello")
        assert told.returncode == 1 and "Team api cannot be run" in told.stderr and "/api" in told.stderr, told
        shown = company.run("teams", "status")
        assert shown.returncode == 0 and "/of api/api" in shown.stdout, shown
        first, queued, after = company._ask("teams-asks")["asks"]
        company.run("teams", "cancel", first["askId"])
        assert company.run("teams", "wait", after["askId"]).returncode == 0
        ended = company.run("teams", "wait", queued["askId"])
        assert ended.returncode == 1 and "E_TEAM_UNAVAILABLE" in ended.stderr and "/api" in ended.stderr, ended
    finally:
        (tmp_path / closed).chmod(0o755)
    assert company.run("teams", "ask", "api", "hello").returncode == 0
