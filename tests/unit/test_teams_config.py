"""teams.json: each fault is named with its team, field and repair, and takes out no other team."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.agents.echo import registered

from holdfast.teams.config import MAX_BYTES, SETTINGS, TEAM_FIELDS, Fault, TeamsConfig, read_config
from holdfast.teams.project_paths import true_spelling
from holdfast.teams.team import Chat, Delivery, Policy, Team, TeamSettings, name_problem

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from([*TEAM_FIELDS, "project", "path"]) | st.text()
SURPRISES = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "Project"
    folder.mkdir()
    return folder


def read(document: Any, home: Path) -> TeamsConfig:
    return read_config(document if isinstance(document, str) else json.dumps(document), home=home)


def only_fault(config: TeamsConfig) -> Fault:
    (fault,) = config.faults
    return fault


def test_the_configuration_of_the_seed_is_served_without_a_fault(tmp_path: Path, project: Path) -> None:
    config = read(
        {
            "settings": {"idleTimeout": 300000, "maxProcesses": 10, "healthCheckInterval": 30000},
            "teams": {
                "frontend": {
                    "project": str(project),
                    "path": str(project),
                    "description": "Frontend team",
                    "skipPermissions": True,
                    "color": "#E91E63",
                }
            },
        },
        tmp_path,
    )
    assert config.faults == ()
    assert config.settings == TeamSettings()
    assert config.teams == {
        "frontend": Team("frontend", project, "Frontend team", skip_permissions=True, color="#E91E63")
    }


def test_every_member_reaches_its_team(tmp_path: Path, project: Path) -> None:
    entry = {
        "project": str(project),
        "agent": "echo",
        "model": "opus",
        "env": {"NODE_ENV": "test"},
        "allowedTools": ["Read", "Bash(git status)"],
        "disallowedTools": ["WebFetch"],
        "policy": "ask",
        "machine": "elsewhere",
        "maxCostUsdPerDay": 5,
        "chat": {"id": -1001234567890, "topic": 7, "allowedUsers": [12345]},
        "sessionFile": ".claude-session",
        "stateFile": "~/.claude-session-state.json",
        "delivery": "hook",
    }
    with registered():
        team = read({"teams": {"backend": entry}}, tmp_path).teams["backend"]
    assert team == Team(
        "backend",
        project,
        agent="echo",
        model="opus",
        env={"NODE_ENV": "test"},
        allowed_tools=("Read", "Bash(git status)"),
        disallowed_tools=("WebFetch",),
        policy=Policy.ASK,
        machine="elsewhere",
        max_cost_usd_per_day=5.0,
        chat=Chat("-1001234567890", 7, (12345,)),
        session_file=project / ".claude-session",
        state_file=Path.home() / ".claude-session-state.json",
        delivery=Delivery.HOOK,
    )


def test_every_setting_is_in_force(tmp_path: Path) -> None:
    given_values = {key: 200 for key in SETTINGS if key not in ("allowedRoots", "maxDepth")}
    config = read({"settings": {**given_values, "maxDepth": 5, "allowedRoots": ["/srv"]}}, tmp_path)
    assert config == TeamsConfig(TeamSettings(200, 200, 200, 200, 200, 200, 200, (Path("/srv"),), 5))


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("skipPermissions", "true", "must be true or false, not text"),
        ("skipPermissions", 1, "must be true or false, not a number"),
        ("color", "red", "must be a color as #RRGGBB"),
        ("color", "#E91E63\n", "control characters"),
        ("agent", "gemini", 'must be "claude", not "gemini"'),
        ("agent", ["claude"], "not a list"),
        ("model", "--dangerously-skip-permissions", "must be the name of a model"),
        ("model", 4, "must be text, not a number"),
        ("description", "x" * 2001, "must have 1 to 2000 characters and has 2001"),
        ("env", ["A=1"], "must be an object of names and texts, not a list"),
        ("env", {"A": 1}, "A must be text, not a number"),
        ("env", {"A=B": "1"}, '"A=B" is no name of an environment variable'),
        ("env", {"HOLDFAST_HOME": "/x"}, "HOLDFAST_HOME belongs to Holdfast"),
        ("env", {"A": "a\0b"}, "holds some that no variable can have"),
        ("env", {f"A{number}": "" for number in range(101)}, "holds 101 names; the limit is 100"),
        ("allowedTools", "Read", "must be a list, not text"),
        ("allowedTools", ["Read", "--add-dir"], "entry 2 must be the name of a tool"),
        ("disallowedTools", [None], "entry 1 must be text, not null"),
        ("policy", "allow", 'must be "deny" or "ask", not "allow"'),
        ("machine", "", "must have 1 to 128 characters and has 0"),
        ("maxCostUsdPerDay", 0, "must be a number above 0"),
        ("maxCostUsdPerDay", True, "must be a number above 0"),
        ("chat", 12, "must be an object with an id"),
        ("chat", {"id": 12, "users": [1]}, 'has no "users"'),
        ("chat", {"id": "homelab"}, "must be a number, or a name with @"),
        ("chat", {"id": 12, "allowedUsers": ["me"]}, "entry 1 must be a whole number"),
        ("sessionFile", "a\0b", "control characters"),
        ("delivery", "push", 'must be "auto" or "hook" or "run"'),
    ],
)
def test_a_wrong_value_takes_out_its_team_and_no_other(
    tmp_path: Path, project: Path, field: str, value: Any, problem: str
) -> None:
    good = {"project": str(project)}
    config = read({"teams": {"wrong": {**good, field: value}, "right": good}}, tmp_path)
    fault = only_fault(config)
    assert (fault.team, fault.field, fault.warning) == ("wrong", field, False)
    assert problem in fault.problem
    assert fault.repair
    assert list(config.teams) == ["right"]
    assert config.refused == ("wrong",)


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("frontend", True),
        ("a.b_c-9", True),
        ("x" * 64, True),
        ("x" * 65, False),
        ("", False),
        (".hidden", False),
        ("..", False),
        ("a/b", False),
        ("a b", False),
        ("é", False),
        ("a\n", False),
        ("external", False),
    ],
)
def test_a_name_is_safe_as_a_file_name_and_in_a_sentence(tmp_path: Path, project: Path, name: str, good: bool) -> None:
    assert (name_problem(name) is None) is good
    config = read({"teams": {name: {"project": str(project)}}}, tmp_path)
    assert (name in config.teams) is good
    assert [(fault.team, fault.field) for fault in config.faults] == ([] if good else [(name, "name")])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("maxProcesses", 0),
        ("maxProcesses", 257),
        ("maxProcesses", 2.0),
        ("idleTimeout", "300000"),
        ("idleTimeout", True),
        ("warmUp", -1),
        ("maxDepth", 33),
    ],
)
def test_a_wrong_setting_is_named_and_leaves_the_default_in_force(
    tmp_path: Path, project: Path, key: str, value: Any
) -> None:
    config = read({"settings": {key: value}, "teams": {"a": {"project": str(project)}}}, tmp_path)
    fault = only_fault(config)
    assert (fault.team, fault.field, fault.warning) == (None, f"settings.{key}", False)
    assert config.settings == TeamSettings()
    assert list(config.teams) == ["a"]


ODD: list[Any] = [
    *(True, 0, 2.0, 2.5, -1, 1e7, 10**30, "", "x", "a\0b", "\ud800", "a\nb", "x" * 5000, "~", [], [None], [1], ["--x"]),
    *(["a"] * 201, {}, {"A": 1}, {"A\ud800": "x"}, {"A": "\ud800"}, {"ID": 1}, {"id": True}, {"id": 1, "topic": 0}),
    *({"id": 1, "allowedUsers": "x"}, {"id": 1, "allowedUsers": [0]}, {"id": 1, "\ud800": 1}),
]


@pytest.mark.parametrize("key", [*TEAM_FIELDS, "project", "path", *SETTINGS])
def test_whatever_a_field_holds_it_is_used_or_named_with_its_repair(tmp_path: Path, project: Path, key: str) -> None:
    for value in ODD:
        entry = {"project": str(project), **({key: value} if key not in SETTINGS else {})}
        config = read({"settings": {key: value} if key in SETTINGS else {}, "teams": {"a": entry}}, tmp_path)
        assert ("a" in config.teams) != ("a" in config.refused)
        for fault in config.faults:
            assert fault.field in (key, f"settings.{key}", "project") and fault.problem and fault.repair
            assert "None" not in str(fault) and "cannot be used" not in str(fault)


class TestProject:
    """Where a team works."""

    def fault(self, home: Path, entry: Any, **settings: Any) -> Fault:
        config = read({"settings": settings, "teams": {"a": entry}}, home)
        assert config.teams == {}
        return only_fault(config)

    @pytest.mark.parametrize(
        ("entry", "field", "problem"),
        [
            ({}, "project", "is missing"),
            ({"project": None}, "project", "is missing"),
            ("/srv", "entry", "must be an object"),
            ({"project": 5}, "project", "must be text, not a number"),
            ({"project": "relative/path"}, "project", "must be an absolute path"),
            ({"project": "~/project"}, "project", "must be an absolute path"),
            ({"project": "/a\0b"}, "project", "control characters"),
            ({"project": "/\ud800"}, "project", "halves of characters"),
            ({"project": "/" + "x" * 300}, "project", "cannot be reached"),
            ({"project": "/" + "x" * 5000}, "project", "must have 1 to 4096 characters"),
        ],
    )
    def test_what_cannot_be_a_project_is_refused(self, tmp_path: Path, entry: Any, field: str, problem: str) -> None:
        fault = self.fault(tmp_path, entry)
        assert (fault.team, fault.field) == ("a", field)
        assert problem in fault.problem

    def test_a_project_that_does_not_exist_is_refused(self, tmp_path: Path) -> None:
        assert "does not exist" in self.fault(tmp_path, {"project": str(tmp_path / "gone")}).problem

    def test_a_file_is_no_project(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        assert "is not a directory" in self.fault(tmp_path, {"project": str(tmp_path / "file")}).problem

    def test_a_directory_that_cannot_be_read_is_refused(
        self, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != project)
        assert "cannot be read" in self.fault(tmp_path, {"project": str(project)}).problem

    def test_a_link_that_leads_in_a_circle_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "circle").symlink_to(tmp_path / "circle")
        assert "cannot be reached" in self.fault(tmp_path, {"project": str(tmp_path / "circle")}).problem

    def test_a_symlink_does_not_lead_out_of_the_allowed_roots(self, tmp_path: Path, project: Path) -> None:
        root = tmp_path / "root"
        root.mkdir()
        (root / "inside").mkdir()
        (root / "way-out").symlink_to(project)
        teams = {name: {"project": str(root / name)} for name in ("inside", "way-out")}
        config = read({"settings": {"allowedRoots": [str(root)]}, "teams": teams}, tmp_path)
        assert list(config.teams) == ["inside"]
        assert "outside settings.allowedRoots" in only_fault(config).problem

    def test_a_name_that_begins_like_a_root_is_not_inside_it(self, tmp_path: Path, project: Path) -> None:
        fault = self.fault(tmp_path, {"project": str(project)}, allowedRoots=[str(project)[:-1]])
        assert "outside" in fault.problem

    def test_an_allowed_root_may_itself_be_reached_through_a_symlink(self, tmp_path: Path, project: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path)
        document = {"settings": {"allowedRoots": [str(tmp_path / "link")]}, "teams": {"a": {"project": str(project)}}}
        assert list(read(document, tmp_path).teams) == ["a"]

    @pytest.mark.parametrize("roots", [[], "/srv", ["srv"], [None], {"a": 1}])
    def test_a_mistake_in_the_allowed_roots_does_not_lift_them(self, tmp_path: Path, project: Path, roots: Any) -> None:
        config = read({"settings": {"allowedRoots": roots}, "teams": {"a": {"project": str(project)}}}, tmp_path)
        assert config.teams == {}
        assert {(fault.team, fault.field) for fault in config.errors} == {
            (None, "settings.allowedRoots"),
            ("a", "project"),
        }

    def test_a_team_of_another_machine_needs_no_project_here(self, tmp_path: Path) -> None:
        (tmp_path / "machine").write_text("this one\n")
        teams = {name: {"project": "/not/here", "machine": name} for name in ("this one", "another one")}
        document = {"teams": {"here": teams["this one"], "there": teams["another one"]}}
        config = read(document, tmp_path)
        assert list(config.teams) == ["there"]
        assert config.refused == ("here",)

    def test_the_deprecated_path_serves_where_project_is_missing(self, tmp_path: Path, project: Path) -> None:
        config = read({"teams": {"a": {"path": str(project)}}}, tmp_path)
        assert config.teams["a"].project == project
        fault = only_fault(config)
        assert (fault.field, fault.problem, fault.warning) == ("path", "is deprecated", True)

    def test_project_counts_where_path_differs(self, tmp_path: Path, project: Path) -> None:
        config = read({"teams": {"a": {"project": str(project), "path": "/elsewhere"}}}, tmp_path)
        assert config.teams["a"].project == project
        assert only_fault(config).warning
        assert "differs" in only_fault(config).problem


LISTED = {"/": {"Users", "bin"}, "/Users": {"me"}, "/Users/me": {"MyApp", "cafe\u0301", "Same", "same"}}


def _listed(folder: Path) -> Collection[str]:
    return LISTED.get(str(folder), ())


@pytest.mark.parametrize(
    ("given_path", "spelt"),
    [
        ("/Users/me/MyApp", "/Users/me/MyApp"),
        ("/users/ME/myapp", "/Users/me/MyApp"),
        ("/Users/me/caf\u00e9", "/Users/me/caf\u00e9"),
        ("/Users/me/SAME", "/Users/me/SAME"),
        ("/Users/me/MyApp/cannot/be/listed", "/Users/me/MyApp/cannot/be/listed"),
        ("/", "/"),
    ],
)
def test_a_path_is_spelt_as_its_directories_list_it(given_path: str, spelt: str) -> None:
    assert true_spelling(Path(given_path), _listed) == Path(spelt)


def test_another_case_than_on_disk_is_a_fault_that_gives_the_right_one(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a case-insensitive file system does: any spelling opens, one is listed.
    (tmp_path / "pROJECT").mkdir(exist_ok=True)
    spelt = "holdfast.teams.project_paths.true_spelling"
    monkeypatch.setattr(spelt, lambda path: project if path.name == "pROJECT" else path)
    fault = only_fault(read({"teams": {"a": {"project": str(tmp_path / "pROJECT")}}}, tmp_path))
    assert (fault.field, fault.problem) == ("project", "is spelt differently on disk")
    assert str(project) in fault.repair


@pytest.mark.parametrize(
    ("document", "where", "repair"),
    [
        ({"team": {}}, (None, "team"), 'Did you mean "teams"?'),
        ({"settings": {"maxprocesses": 3}}, (None, "settings.maxprocesses"), 'Did you mean "maxProcesses"?'),
        ({"settings": {"zzz": 3}}, (None, "settings.zzz"), "Remove it."),
        ({"teams": {"a": {"project": "/", "skip_permissions": True}}}, ("a", "skip_permissions"), "skipPermissions"),
    ],
)
def test_an_unknown_key_is_a_warning_that_names_the_nearest(
    tmp_path: Path, document: Any, where: tuple[str | None, str], repair: str
) -> None:
    config = read(document, tmp_path)
    fault = only_fault(config)
    assert ((fault.team, fault.field), fault.warning) == (where, True)
    assert repair in fault.repair
    assert config.refused == ()


@pytest.mark.parametrize(
    ("team", "field"),
    [
        ('"a": {"project": "/"}, "a": {"project": "/tmp"}', "name"),
        ('"a": {"project": "/", "project": "/tmp"}', "project"),
        ('"a": {"project": "/", "env": {"X": "1", "X": "2"}}', "env"),
    ],
)
def test_a_key_given_twice_is_a_fault_because_nobody_knows_which_was_meant(
    tmp_path: Path, team: str, field: str
) -> None:
    config = read(f'{{"teams": {{{team}, "b": {{"project": "/"}}}}}}', tmp_path)
    fault = only_fault(config)
    assert (fault.team, fault.field) == ("a", field)
    assert "more than once" in fault.problem
    assert list(config.teams) == ["b"]


@pytest.mark.parametrize(
    ("text", "problem", "repair"),
    [
        ("", "line 1, column 1", "Correct it there."),
        ('{\n  "teams": {,}\n}', "line 2, column 13", "Correct it there."),
        ('{"teams": {} // REQUIRED\n}', "is not JSON", "JSON knows no comments"),
        ("[]", "must be a JSON object", 'Write {"teams": {}}.'),
        ('{"teams": []}', 'must have an object as "teams"', 'Write "teams": {…}.'),
        ('{"settings": 5}', 'must have an object as "settings"', 'Write "settings": {…}.'),
        ('{"teams": {}, "teams": {}}', 'has "teams" more than once', "into one"),
        ('{"x": NaN}', "(NaN)", "Correct it."),
        ('{"x": 1e999}', "(1e999)", "Correct it."),
        ('{"x": 1' + "0" * 5000 + "}", "number that cannot be used", "Correct it."),
        ('{"x": ' + "[" * 20 + "]" * 20 + "}", "is nested too deeply", "16 levels"),
        ('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}", "is nested too deeply", "16 levels"),
        (json.dumps({"teams": {str(n): {} for n in range(1001)}}), "has more than 1000 teams", "Remove teams"),
        ('{"x": "' + "y" * MAX_BYTES + '"}', f"is larger than {MAX_BYTES} bytes", "Remove teams"),
    ],
    ids=lambda value: value[:24],
)
def test_a_file_that_cannot_be_read_is_one_fault(tmp_path: Path, text: str, problem: str, repair: str) -> None:
    config = read(text, tmp_path)
    fault = only_fault(config)
    assert not config.readable
    assert (fault.team, fault.field, config.teams) == (None, "teams.json", {})
    assert problem in fault.problem
    assert repair in fault.repair


def test_a_fault_never_shows_a_secret_of_the_environment(tmp_path: Path, project: Path) -> None:
    env = {"TOKEN": "s3cret", "BAD": "s3cret\0", "HOLDFAST_X": "s3cret"}
    for entry in ({"env": {name: value}} for name, value in env.items()):
        assert "s3cret" not in repr(read({"teams": {"a": {"project": str(project), **entry}}}, tmp_path))


def test_a_fault_cannot_steer_the_terminal(tmp_path: Path) -> None:
    fault = only_fault(read({"\x1b[2J" + "x" * 500: 1}, tmp_path))
    assert "\x1b" not in str(fault)
    assert len(str(fault)) < 200


@given(st.text() | st.text(alphabet='{}[]",:\\/0eNu \n'))
@SURPRISES
def test_no_text_breaks_the_reader(tmp_path: Path, text: str) -> None:
    config = read_config(text, home=tmp_path)
    assert config.readable or len(config.faults) == 1


@given(st.dictionaries(st.text(max_size=70), st.dictionaries(KEYS, VALUES, max_size=5) | VALUES, max_size=4), VALUES)
@SURPRISES
def test_whatever_a_document_holds_each_team_is_served_or_has_a_fault(
    tmp_path: Path, project: Path, teams: dict[str, Any], anything: Any
) -> None:
    for entry in teams.values():
        if isinstance(entry, dict):
            entry.setdefault("project", str(project))
    document = json.dumps({"teams": teams, "settings": {"x": anything}})
    config = read_config(document, home=tmp_path)
    if config.readable:
        assert {*config.teams, *config.refused} == set(teams)
        assert not set(config.teams) & set(config.refused)
    for name, team in config.teams.items():
        assert name_problem(name) is None
        assert team.project.is_dir()
    for fault in config.faults:
        str(fault).encode()


def test_every_member_and_setting_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "teams.md").read_text()
    for key in (*TEAM_FIELDS, *SETTINGS, "project", "path"):
        assert f"`{key}`" in text, key
