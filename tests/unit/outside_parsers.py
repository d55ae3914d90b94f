"""What reads text from outside, beside the parsers of `test_linear_time.py`, with the texts it would be slowest on.

A parser that takes a stream, a file or a line is given the text as such. What refuses a text has read it as well.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.growth import Text
from tests.transcripts import folded

from holdfast.agents.claude.named_programs import (
    TooManyWords,
    named_programs,
    texts_of_markdown,
    texts_of_settings,
)
from holdfast.agents.claude.transcripts import batches as history_files
from holdfast.agents.claude.transcripts import reader, receipt
from holdfast.agents.claude.transcripts.entries import blocks, request_in, timestamp
from holdfast.agents.claude.transcripts.files import TranscriptFiles
from holdfast.agents.claude.transcripts.merge import lines_in, merge
from holdfast.agents.claude.transcripts.neutral import entry_of, spoken_in
from holdfast.agents.claude.transcripts.spools import Spool
from holdfast.agents.claude.transcripts.transcript_copy import FileState
from holdfast.agents.transcript_entries import Called
from holdfast.agents.transcript_position import CallKind, Position
from holdfast.bridge.chat import arrivals, commands
from holdfast.bridge.session_files import state_in
from holdfast.briefing.ledger import folding
from holdfast.briefing.ledger.model import Ledger
from holdfast.connections import tokens
from holdfast.connections.signing_keys import FileShelf, SigningRing
from holdfast.errors import HoldfastError
from holdfast.files import bounded_lines
from holdfast.files.inside import UnreadableInside
from holdfast.git import state as git_state
from holdfast.handoff import tables
from holdfast.handoff.validation import _is_json
from holdfast.history.passages import passages
from holdfast.history.search import holds
from holdfast.identity.caller import Hello
from holdfast.identity.managed import read_token
from holdfast.identity.project import canonical_uri
from holdfast.protocol.hooks.readings import is_path
from holdfast.protocol.project.settings import serena_entries
from holdfast.reasoning.fulltext import Term, indexed, terms_of
from holdfast.reasoning.params import ThoughtParams
from holdfast.relay.lines import LineSplitter, read_line
from holdfast.setup import json_file
from holdfast.teams.config import read_config, read_document
from holdfast.teams.config_fields import Refused
from holdfast.teams.permissions import shown_input
from holdfast.teams.steps import changed
from holdfast.text import bounded_json, bounded_toml, quoting, terminal
from holdfast.times import milliseconds
from holdfast.wire.http.origins import allowed_origins, host_of
from holdfast.wire.mcp.schema import parse

Work = Callable[[str], object]
T = Text
JSON = tuple(map(Text, ("[", '{"a":', '"', "1", "[],", '"\\u0061', "[[],{}],", '{"a":1},', "\\", " ")))
LINES = (*JSON, *map(Text, ("\n", "{}\n", '{"uuid":"a"}\n', '{"a":[]}\n', "[\n", "a\n")))


def refusing(work: Work) -> Work:
    """The work, where a refusal is an answer."""

    def done(text: str) -> object:
        with suppress(ValueError, HoldfastError, Refused, UnreadableInside):
            return work(text)
        return None

    return done


def _numbered(line: str, work: Work) -> Work:
    """The work on lines that all differ, as long as the text altogether."""
    return lambda text: work("".join(line % number for number in range(len(text) // max(1, len(line)))))


def _in_list(work: Callable[[Any], object]) -> Work:
    """The work on what a JSON list of these texts holds."""
    return lambda text: work(json.loads(f"[{text.rstrip(',')}]"))


def _split(text: str) -> object:
    """A relay's stream, in the pieces in which it comes, and each line of it."""
    lines, data = LineSplitter(limit=4_096), text.encode()
    cut = [line for at in range(0, len(data), 512) for line in lines.feed(data[at : at + 512])]
    return [read_line(line) for line in (*cut, *lines.finish())]


def _in_file(work: Callable[[Path], object]) -> Work:
    def done(text: str) -> object:
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write(text)
            file.flush()
            return work(Path(file.name))

    return done


def _ledger(path: Path) -> object:
    ledger = Ledger("a")
    return reader.read_new(path, Position(), lambda line: folding.fold(ledger, entry_of(line)), restart=lambda: None)


def _levelled(text: str) -> object:
    lines = lines_in(text)
    return merge(lines[: len(lines) * 2 // 3], lines[len(lines) // 3 :])


def _level_file(text: str) -> object:
    with tempfile.TemporaryDirectory() as folder:
        files = TranscriptFiles(Path(folder))
        files.write("a", "b", "", lines_in(text + "\n"))
        return files.read("b"), files.spent("a", "b") if files.known("b") else None


def _spooled(text: str) -> object:
    lines = [line.encode() + b"\n" for line in text.split("\n")][:20_000]
    with Spool.of(lines) as one, Spool.of(reversed(lines)) as other, one.merged(other) as both:
        return sum(map(len, both.content()))


def _archived(text: str) -> object:
    return list(tables.read(tables.TABLES["sessions"], [line.encode() for line in text.split("\n")]))


def _agent(content: object) -> object:
    said: dict[str, Any] = {"type": "assistant", "message": {"content": content}, "timestamp": "x"}
    told: dict[str, Any] = {"type": "user", "message": {"content": content}}
    for entry in (said, told):
        list(blocks(entry)), request_in(entry), timestamp(entry), list(passages(spoken_in(entry)))
    return folded(Ledger("a"), [said, told])


def _result(text: str) -> object:
    told = {"type": "tool_result", "tool_use_id": "a", "content": text, "is_error": True}
    return folded(Ledger("a"), [{"type": "user", "message": {"content": [told]}}] * 3)


def _todos(count: int) -> object:
    todos = [{"content": f"a {number}", "status": "pending"} for number in range(count)]
    call = {"type": "tool_use", "id": "1", "name": "TodoWrite", "input": {"todos": todos}}
    return _agent([call, {"type": "tool_result", "tool_use_id": "1", "content": "ok"}])


def _hello(text: str) -> object:
    line = {"relay": "a", "version": "1", "pid": 1, "ppid": 1, "cwd": text[:4096], "env": dict.fromkeys(text, text)}
    return Hello.of({**line, "env": {f"{text[:9]}{number}": "a" for number in range(len(text) // 8)}})


def _telegram(text: str) -> object:
    entities = [{"type": "mention", "offset": number, "length": 1} for number in range(len(text) // 8)]
    chat = {"id": 1, "type": "private"}
    message = {"message_id": 1, "chat": chat, "from": {"id": 1, "first_name": text}, "text": text, "entities": entities}
    return arrivals.arrival({"update_id": 1, "message": message})


def _token(text: str) -> object:
    ring = SigningRing(FileShelf(Path("/nowhere")), None, lambda: 0)
    return tokens.read(text[: tokens.MAX_LENGTH], "a", ring, 0)


def _named_programs(text: str) -> object:
    for texts in (texts_of_settings(json.dumps(text).encode()), texts_of_markdown(text.encode())):
        with contextlib.suppress(TooManyWords):
            named_programs(texts, Path("/nowhere"))
    return None


def _git_output(text: str) -> object:
    return git_state._state(git_state._words(text.encode()))


OUTSIDE: dict[str, tuple[Work, tuple[Text, ...]]] = {
    "handoff.validation._is_json": (lambda text: _is_json(text, dict), JSON),
    "agents.claude.transcripts.spools": (refusing(_spooled), (T('{"uuid":"a"}\n'), T("{}\n"), T("\n"), T("a\n"))),
    "agents.claude.transcripts.spools: lines that all differ": (_numbered('{"uuid":"%d"}\n', _spooled), (T("a"),)),
    "agents.claude.transcripts.transcript_copy": (
        _in_file(lambda path: FileState.of(path).ids_since(FileState(path))),
        (T('{"uuid":"a"}\n'), T('"uuid"'), T('"uuid"\n'), T("\n"), T('{"uuid":')),
    ),
    "handoff.tables": (refusing(_archived), LINES),
    "text.bounded_json": (refusing(bounded_json.loads), JSON),
    "files.bounded_lines": (
        refusing(lambda text: bounded_lines.lines(text, "a")),
        tuple(map(T, ("\n", "a", "a\n", "\r", "\u2028"))),
    ),
    "text.bounded_toml": (refusing(bounded_toml.loads), tuple(map(T, ("[", "a.", "[a]\n", "\n", '"', "a=[")))),
    "bridge.chat.arrivals": (_telegram, tuple(map(T, ("a", "\0", "@a ")))),
    "bridge.chat.commands": (commands.command, tuple(map(T, ("/a", "/a ", "@", " ", "/")))),
    "bridge.chat.commands.urgency": (commands.urgency, tuple(map(T, ("stop", "urgent:", "!", " ")))),
    "agents.claude.transcripts.receipt": (
        _in_file(lambda path: receipt.reached(str(path), {"a": "aab"})),
        (T("a"), T("aa\n")),
    ),
    "bridge.session_files": (lambda text: state_in(text.encode()), JSON),
    "agents.claude.transcripts.entries": (
        _in_list(_agent),
        tuple(map(T, ('{"type":"text","text":"a"},', '"a",', "{},", "[],"))),
    ),
    "briefing.ledger.failures": (_result, tuple(map(T, ("\n", "Error: a\n", "Exit code 1\n", "a", "fatal: ")))),
    "briefing.ledger.folding: calls that all differ": (
        _numbered('{"type":"tool_use","id":"%d","name":"Read","input":{"file_path":"/%%d"}},', _in_list(_agent)),
        (T("a"),),
    ),
    "briefing.ledger.folding: errors that all differ": (_numbered("A%dError\n", _result), (T("a"),)),
    "briefing.ledger.folding: tasks that all differ": (lambda text: _todos(len(text) // 8), (T("a"),)),
    "agents.claude.transcripts.reader": (_in_file(_ledger), LINES),
    "caller.Hello": (refusing(_hello), (T("a"), T("\0"))),
    "connections.tokens": (_token, tuple(map(T, ("a.", ".", "eyJ", "e30.", "=")))),
    "agents.claude.transcripts.batches": (_in_file(lambda path: list(history_files.batches(path, 0))), LINES),
    "agents.claude.transcripts.batches: directories that all differ": (
        _numbered('{"cwd":"/%d"}\n', _in_file(lambda path: history_files.directory_of(path, {}))),
        (T("a"),),
    ),
    "history.search": (lambda text: holds(text, [Term(("aab",)), Term(("b",))]), (T("a"), T("a\n"))),
    "identity.managed.read_token": (read_token, tuple(map(T, (":", "1", "1:")))),
    "identity.project.canonical_uri": (
        refusing(lambda text: canonical_uri(text[:4096])),
        (T("a/", "/"), T("../", "/"), T("%41", "file:///"), T("a", "a://"), T("//", "http://"), T("[", "http://")),
    ),
    "git.state": (_git_output, tuple(map(T, ("? a\0", "1 ", "# branch.oid ", "\0", "2 a b c d e f g h i\0")))),
    "git.state: paths that all differ": (_numbered("? %d\0", _git_output), (T("a"),)),
    "protocol.hooks.readings": (is_path, (T("a/"), T("\0"), T("\ud800"))),
    "agents.claude.named_programs": (
        _named_programs,
        (*JSON, *map(T, ("a ", "'", '"', "./a", "!`", "```!", "---\nhooks", "$(pwd)", "\\", "\n---"))),
    ),
    "protocol.project.settings: .mcp.json": (lambda text: serena_entries(text.encode()), JSON),
    "text.quoting.error_text": (quoting.error_text, tuple(map(T, ("\n", "<system", "\u2028", "a", "\x1b[")))),
    "text.quoting.marked": (quoting.marked, tuple(map(T, ("\n", "> ", "<system", "\u2028", "a", "\x1b[")))),
    "text.quoting.quoted": (lambda text: quoting.quoted(text, 200), tuple(map(T, ("\n", '"', "\\", "a", "\ud800")))),
    "text.quoting.read_signed": (quoting.read_signed, tuple(map(T, ("[", "\n", "a")))),
    "reasoning.fulltext.terms_of": (refusing(terms_of), tuple(map(T, ("a ", "-", "a", '"', "'", "数", '"a ')))),
    "reasoning.fulltext.indexed": (indexed, tuple(map(T, ("a", "é", "数", "\u0301")))),
    "relay.lines": (_split, LINES),
    "setup.json_file": (refusing(partial(json_file.parsed, Path("a"))), JSON),
    "setup.json_file: names that all differ": (
        _numbered('"%d":1,', lambda text: json_file.parsed(Path("a"), f'{{{text}"a":1}}')),
        (T("a"),),
    ),
    "agents.claude.transcripts.merge": (_levelled, LINES),
    "agents.claude.transcripts.merge: lines that all differ": (_numbered('{"uuid":"%d"}\n', _levelled), (T("a"),)),
    "agents.claude.transcripts.files": (_level_file, (T('{"type":"agent_metadata"}\n'), T('{"type":"cost-state"}\n'))),
    "agents.claude.transcripts.files: notes that all differ": (
        _numbered('{"type":"agent_metadata","a":%d}\n', _level_file),
        (T("a"),),
    ),
    "teams.steps": (
        lambda text: changed(Called("c", "Edit", CallKind.CHANGE, replaced=(text, text))),
        (T("\n"), T("x")),
    ),
    "teams.permissions": (shown_input, (*JSON, T("\x1b"), T("\n"))),
    "teams.config": (refusing(read_document), JSON),
    "teams.config: names that all differ": (
        refusing(_numbered('"a%d":{"b":1},', lambda text: read_config(f'{{"teams":{{{text}"a":1}}}}', home=Path("/")))),
        (T("a"),),
    ),
    "teams.config: fields that all differ": (
        refusing(
            _numbered('"a%d":1,', lambda text: read_config(f'{{"teams":{{"a":{{{text}"b":1}}}}}}', home=Path("/")))
        ),
        (T("a"),),
    ),
    "text.terminal.one_line": (terminal.one_line, tuple(map(T, ("\n", "\x1b[", "a", "\u2028")))),
    "times.milliseconds": (refusing(milliseconds), tuple(map(T, ("1", "2026-", "-", ":")))),
    "wire.http.origins": (
        lambda text: (host_of(text), host_of(f"//{text}"), refusing(allowed_origins)(text)),
        tuple(map(T, ("a", ":", "[", "//", "@", "%"))),
    ),
    "wire.mcp.schema: fields that all differ": (
        refusing(_numbered('"a%d":1,', lambda text: parse(ThoughtParams, json.loads(f'{{{text}"b":1}}')))),
        (T("a"),),
    ),
}
"""Named after the module, or the function where a module has several."""

NOT_FROM_OUTSIDE = {
    "agents.claude.hooks": "by `bounded_json`",
    "handoff.container": "lines of `handoff.tables` and of transcripts; the zip is Python's, its list bounded",
    "handoff.queries.foreign_backup": "by `bounded_json`",
    "handoff.holding": "by `bounded_json`, of a column that was checked",
    "bridge.chat.held": "one `splitlines` of a message, which is bounded",
    "bridge.chat.service": "by `bounded_json` and `bridge.chat.arrivals`",
    "briefing.settings": "by `bounded_toml`",
    "briefing.knowledge": "a briefing, which is bounded",
    "briefing.ledger.wording": "a briefing, which is bounded",
    "cli.inbox": "the daemon's answer",
    "setup.extras": "the receipt that uv wrote into this very installation",
    "setup.launcher": "our own file, bounded",
    "cli.protocol_init": "our own text",
    "cli.show": "the daemon's answer",
    "cli.sessions": "the daemon's answer",
    "demo.cut_off": "what the demo's own commands print",
    "demo.played_agent": "what the demo sends to its own process",
    "demo.screen": "our own text",
    "doctor.daemon": "the end of the daemon's own log",
    "daemon.socket": "by `bounded_json` and `caller.Hello`",
    "git.directory": "the user's own exclude file, in a command",
    "relay.statusline": "the daemon's answer",
    "hooks.dispatch": "by `bounded_json` and what answers hooks",
    "process.alive": "the kernel's tables",
    "protocol.checks.gates": "the last lines of a command's output, which is bounded",
    "protocol.checks.repository": "git's list of files",
    "protocol.definition": "by `bounded_json`",
    "protocol.queries": "by `bounded_json`, of a column that the server wrote",
    "git.command": "git's last words, which are bounded",
    "protocol.project.toml_lines": "by `protocol.project.settings`",
    "protocol.serena.probe": "the end of Serena's log",
    "setup.toml_entry": "the user's own settings, in a command",
    "store.high_water": "a file of the data directory",
    "store.integrity": "what the database says of itself",
    "store.backup.own_backups": "a file of the data directory",
    "store.postgres_server": "what PostgreSQL's own tools print",
    "store.salvage.repair": "what the database says of itself",
    "doctor.mcp_client": "the answer of Holdfast's own relay",
    "daemon.upgrade": "the daemon's answer",
    "agents.claude.mcp_servers": "by `bounded_json`",
    "agents.claude.session": "one line of an error",
    "agents.claude.open_elsewhere": "the kernel's tables",
    "wire.http.server": "the kernel's tables",
    "wire.http.rest": "by `bounded_json`, `urllib` and `wire.mcp.schema`",
}
"""Modules that take text apart and are not in the list, and why not."""
