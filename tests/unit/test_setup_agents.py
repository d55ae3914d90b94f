"""`holdfast setup codex|gemini|opencode|cursor|vscode`: the server in their files, and files given back."""

from __future__ import annotations

import json
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agents.file_settings import SETTINGS
from holdfast.agents.settings import Scope, SetupRequest
from holdfast.errors import Conflict
from holdfast.setup import toml_entry
from holdfast.setup.json_file import SettingsUnusable
from holdfast.setup.server import NAME, of_this_machine
from holdfast.setup.steps import apply

USER_FILES = {
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
}
JSON_KEYS = {"gemini": "mcpServers", "opencode": "mcp", "cursor": "mcpServers", "vscode": "servers"}
WORDS = ["sh", "-c", '[ -O "$0" ] && . "$0"', "/data/launcher.sh", "mcp"]
EARLIER = ["/old/python", "-P", "-m", "holdfast", "mcp"]
ENTRIES: dict[str, dict[str, Any]] = {
    "codex": {"command": WORDS[0], "args": WORDS[1:], "env": {"HOLDFAST_HOME": "/data"}},
    "gemini": {"command": WORDS[0], "args": WORDS[1:], "env": {"HOLDFAST_HOME": "/data"}},
    "opencode": {"type": "local", "command": WORDS, "enabled": True, "environment": {"HOLDFAST_HOME": "/data"}},
    "cursor": {"type": "stdio", "command": WORDS[0], "args": WORDS[1:], "env": {"HOLDFAST_HOME": "/data"}},
    "vscode": {"type": "stdio", "command": WORDS[0], "args": WORDS[1:], "env": {"HOLDFAST_HOME": "/data"}},
}
TOML = """\
# how I like it
model = "large"   # the big one

[mcp_servers.other]
command = "other"
args = [
  "--list",
]

# what I trust
[projects."/somewhere"]
trust_level = "trusted"
"""


class Desk:
    """One agent of one user."""

    def __init__(self, root: Path, name: str, project: Path | None = None) -> None:
        scope = Scope.USER if project is None else Scope.PROJECT
        self.name = name
        self.request = SetupRequest(scope, project or root, root / ".holdfast", None, {"HOME": str(root)})
        self.path = SETTINGS[name].setup(self.request).path

    def install(self, home: str | None = None) -> None:
        apply(SETTINGS[self.name].setup(replace(self.request, other_home=home)).install())

    def remove(self) -> None:
        apply(SETTINGS[self.name].setup(self.request).remove())

    def write(self, text: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(text.encode())

    def servers(self) -> dict[str, Any]:
        text = self.path.read_text()
        if self.name == "codex":
            return dict(tomllib.loads(text)["mcp_servers"])
        return dict(json.loads(text)[JSON_KEYS[self.name]])


@pytest.fixture(params=list(SETTINGS))
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Desk:
    return Desk(tmp_path, request.param)


def theirs(desk: Desk) -> str:
    if desk.name == "codex":
        return TOML
    return json.dumps({"theme": "dark", JSON_KEYS[desk.name]: {"other": {"command": "other"}}})


def test_the_server_stands_where_and_how_the_agent_documents_it(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert Desk(tmp_path, desk.name).path == tmp_path / USER_FILES[desk.name]
    desk.install("/data")
    assert desk.servers() == {NAME: ENTRIES[desk.name]}


@pytest.mark.parametrize("empty", [None, "", "theirs"])
def test_three_times_is_once_and_removing_gives_back_every_byte(desk: Desk, empty: str | None) -> None:
    if empty is not None:
        desk.write(theirs(desk) if empty else "")
    before = desk.path.read_bytes() if desk.path.exists() else None
    desk.install()
    once = desk.path.read_bytes()
    desk.install()
    desk.install()
    assert desk.path.read_bytes() == once != before
    desk.remove()
    assert (desk.path.read_bytes() if desk.path.exists() else None) == before
    assert before is not None or not desk.path.parent.exists()


def test_what_others_changed_meanwhile_stays(desk: Desk) -> None:
    desk.write(theirs(desk))
    desk.install()
    if desk.name == "codex":
        desk.path.write_text(desk.path.read_text() + "\n# later\n[mcp_servers.later]\ncommand = 'later'\n")
    else:
        content = json.loads(desk.path.read_text())
        content[JSON_KEYS[desk.name]]["later"] = {"command": "later"}
        desk.path.write_text(json.dumps(content))
    desk.remove()
    assert set(desk.servers()) == {"other", "later"}
    kept = ("# how I like it", "# what I trust", "# later") if desk.name == "codex" else ("dark",)
    assert all(text in desk.path.read_text() for text in kept)


def test_an_older_entry_is_brought_up_to_date_and_keeps_what_its_owner_added(desk: Desk) -> None:
    desk.install("/old")
    text = desk.path.read_text()
    for now, before in zip([*WORDS[:3], "/old/launcher.sh", "mcp"], EARLIER, strict=True):
        text = text.replace(json.dumps(now), json.dumps(before), 1)
    assert "/old/python" in text
    desk.write(text.replace("HOLDFAST_HOME", "HOLDFAST_TOOLSETS").replace("/old", "/older"))
    desk.install()
    (entry,) = desk.servers().values()
    assert "sh" in (entry["command"], entry["command"][0]) and "/older/python" not in desk.path.read_text()
    assert {"HOLDFAST_TOOLSETS": "/older"} in entry.values()


def test_a_server_that_only_has_our_name_is_left_alone(desk: Desk) -> None:
    key = JSON_KEYS.get(desk.name)
    text = (
        '[mcp_servers.holdfast]\nurl = "http://x"\n' if key is None else json.dumps({key: {NAME: {"url": "http://x"}}})
    )
    desk.write(text)
    with pytest.raises(Conflict, match="Rename or remove it"):
        desk.install()
    desk.remove()
    assert desk.path.read_text() == text


@pytest.mark.parametrize("text", ["{", "[1", "\x00"])
def test_malformed_settings_are_refused_and_left_as_they_are(desk: Desk, text: str) -> None:
    desk.write(text)
    with pytest.raises(SettingsUnusable, match=r"not changed"):
        desk.install()
    assert desk.path.read_text() == text


@pytest.mark.parametrize("name", list(JSON_KEYS))
@pytest.mark.parametrize("text", ['{\n  // mine\n  "theme": "dark"\n}', '{"theme": "dark",}', "/* mine */ {}"])
def test_json_with_comments_is_not_rewritten_and_what_to_paste_is_told(tmp_path: Path, name: str, text: str) -> None:
    desk = Desk(tmp_path, name)
    desk.write(text)
    with pytest.raises(SettingsUnusable) as refused:
        desk.install("/data")
    told = str(refused.value)
    assert json.loads(told[told.index("{") :]) == {JSON_KEYS[name]: {NAME: ENTRIES[name]}}
    assert desk.path.read_text() == text


def test_a_shared_file_names_nothing_of_this_machine(desk: Desk, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    shared = Desk(tmp_path, desk.name, project)
    shared.install("/data")
    text = shared.path.read_text()
    assert shared.path.is_relative_to(project)
    assert sys.executable not in text and "/data" not in text and "${" not in text


def test_opencode_in_its_commented_form_and_with_its_newer_layout(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").write_text('{"mcp": {"servers": {"other": {"type": "local", "command": ["x"]}}}}')
    desk = Desk(tmp_path, "opencode")
    assert desk.path.name == "opencode.jsonc"
    desk.install()
    assert set(desk.servers()["servers"]) == {"other", NAME}
    assert not (folder / "opencode.json").exists()


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { other = { command = "x" } }\n',
        '[mcp_servers.holdfast]\ncommand = "old"\nargs = ["-m", "holdfast mcp",\n["deep"]]\n',
    ],
    ids=["an inline table", "a table that goes on over what looks like a header"],
)
def test_toml_that_cannot_be_changed_without_risk_is_refused_with_what_to_put_in(tmp_path: Path, text: str) -> None:
    desk = Desk(tmp_path, "codex")
    desk.write(text)
    with pytest.raises(SettingsUnusable, match=r"(?s)by hand:.*\[mcp_servers\.holdfast\]"):
        desk.install()
    assert desk.path.read_text() == text


def test_a_toml_table_is_replaced_in_its_place_with_its_subtables(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        'a = 1\n\n[mcp_servers."holdfast"]\ncommand = "holdfast"\nargs = ["mcp"]\n\n'
        '[mcp_servers.holdfast.env]\nHOLDFAST_TOOLSETS = "all"\n\n# last\n[z]\nb = 2\n'
    )
    server = of_this_machine(None)
    change = toml_entry.installed(path, "mcp_servers", server.entry(kind=None))
    assert change.after is not None
    assert change.after.startswith("a = 1\n\n[mcp_servers.holdfast]\n") and "# last\n[z]\nb = 2\n" in change.after
    assert tomllib.loads(change.after)["mcp_servers"] == {
        NAME: {**server.entry(kind=None), "env": {"HOLDFAST_TOOLSETS": "all"}}
    }


OURS = """\
[mcp_servers.holdfast]
command = "old"
args = ["-m", "holdfast", "mcp"]

[mcp_servers.holdfast.env]
HOLDFAST_TOOLSETS = "all"
"""


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("# top\nmodel = 'x'  # mine\n\n", "\n# about z\n\n[z]\nb = 2 # two\n# end"),
        ("mcp_servers.other.command = 'dotted'\n", "\n[z]\nb.c = 2\n"),
        ("[[hooks]]\nname = 'a'\n\n[[hooks]]  # second\nname = 'b'\n\n", "\n# third\n[[hooks]]\nname='c'"),
        ("env = { A = '1', B = { C = 2 } }\n", "\n[mcp_servers.other]\nenv = {A='1'} # inline\n"),
        ('text = """\n[mcp_servers.holdfast]\n"""\n', "\n[ z ]\n  b   =   [ 1,\n   2 ]\n"),
    ],
    ids=["comments", "dotted keys", "arrays of tables", "inline tables", "odd spacing and look-alikes"],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_every_byte_outside_our_entry_stays_or_the_edit_is_refused(
    tmp_path: Path, above: str, below: str, end: str
) -> None:
    above, ours, below = (text.replace("\n", end) for text in (above, OURS, below))
    path = tmp_path / "config.toml"
    path.write_bytes((above + ours + below).encode())
    try:
        changed = toml_entry.installed(path, "mcp_servers", of_this_machine(None).entry(kind=None)).after
        gone = toml_entry.removed(path, "mcp_servers").after
    except SettingsUnusable as refused:
        assert "by hand" in str(refused)
        return
    assert changed is not None and gone is not None
    assert changed.startswith(above) and changed.endswith(below)
    entry = changed.removeprefix(above).removesuffix(below)
    assert entry.startswith("[mcp_servers.holdfast]") and entry.count("\n") == entry.count(end)
    assert gone.startswith(above) and gone.endswith(below) and "holdfast" not in gone.replace(above, "")


@pytest.mark.parametrize(
    "text",
    ["[a]\nx = 1\n[a]\ny = 2\n", "[mcp_servers.holdfast]\n[mcp_servers.holdfast]\n", "a.b = 1\n[a]\n[a]\n"],
    ids=["a table", "our table", "a table of dotted keys"],
)
def test_a_table_that_is_defined_twice_is_refused_by_its_name_and_line(tmp_path: Path, text: str) -> None:
    desk = Desk(tmp_path, "codex")
    desk.write(text)
    with pytest.raises(SettingsUnusable, match=r"config\.toml: Cannot .*line \d.*not changed"):
        desk.install()
    assert desk.path.read_text() == text


def test_an_array_of_tables_in_place_of_the_servers_is_refused(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "codex")
    desk.write("[[mcp_servers]]\nname = 'a'\n")
    with pytest.raises(SettingsUnusable, match="`mcp_servers` must be a table"):
        desk.install()


NAMES = st.text(alphabet="abh-_", min_size=1, max_size=4) | st.just("holdfast2")
HEADERS = st.builds("{}.{}".format, st.sampled_from(["mcp_servers", "projects", "a.b"]), NAMES)
LOOKS_LIKE_OURS = '"""\n[mcp_servers.holdfast]\n"""'
VALUES = st.sampled_from(['"x"', "1", "true", "[1, 2]", LOOKS_LIKE_OURS, "[\n  [1],\n]", "{ a = 1 }"])
TABLES = st.dictionaries(HEADERS, st.dictionaries(NAMES, VALUES, max_size=3), max_size=4)


def table_text(header: str, body: dict[str, str]) -> str:
    return f"# about it\n[{header}]\n" + "".join(f"{key} = {value}\n" for key, value in body.items())


@given(tables=TABLES, ends=st.sampled_from(["", "\n", "\n\n# end"]))
def test_any_toml_keeps_its_meaning_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, tables: dict[str, dict[str, str]], ends: str
) -> None:
    parts = [table_text(header, body) for header, body in tables.items()]
    path = tmp_path_factory.mktemp("codex") / "config.toml"
    path.write_text("\n".join(parts).rstrip("\n") + ends)
    before = tomllib.loads(path.read_text())
    entry = of_this_machine("/data").entry(kind=None)
    try:
        toml_entry.installed(path, "mcp_servers", entry).write()
    except SettingsUnusable:
        assert tomllib.loads(path.read_text()) == before
        return
    servers = before.get("mcp_servers", {})
    assert tomllib.loads(path.read_text()) == {**before, "mcp_servers": {**servers, NAME: entry}}
    toml_entry.removed(path, "mcp_servers").write()
    assert tomllib.loads(path.read_text()) == before
