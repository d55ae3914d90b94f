"""A hostile text costs time in proportion to its length, in every regular expression and every parser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.growth import Text, discovered, growth, other_uses, taking_apart, uses
from tests.transcripts import folded
from tests.unit.linear_patterns import ADVERSARIES, CALLED, UNREACHED
from tests.unit.outside_parsers import NOT_FROM_OUTSIDE, OUTSIDE

from holdfast.bridge.chat.formatting import formatted
from holdfast.bridge.chat.splitting import split
from holdfast.bridge.session_files import session_in
from holdfast.briefing.ledger.error_forms import errors_in
from holdfast.briefing.ledger.keeping import kept
from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.ledger.runs import run_of
from holdfast.briefing.ledger.shell_files import files_in
from holdfast.dashboard.find import looking_for
from holdfast.handoff.validation import CHANGED, _reported_as_changed
from holdfast.history.search import line_with
from holdfast.identity.project import _remote_url, normalise_remote
from holdfast.protocol.checks.docs_only import code_blocks
from holdfast.protocol.checks.globs import matches
from holdfast.protocol.checks.reports import read_report
from holdfast.protocol.memories import session_named
from holdfast.protocol.project import settings
from holdfast.protocol.project.document import parse
from holdfast.protocol.project.table_rows import cells
from holdfast.protocol.serena.discovery import _expand_variables
from holdfast.reasoning.fulltext import Term, terms_of
from holdfast.reasoning.search import snippet
from holdfast.redaction import masked, tokens
from holdfast.redaction.contexts import context_spans
from holdfast.redaction.detector import STRINGS
from holdfast.redaction.tables import table_spans
from holdfast.relay.ends import members
from holdfast.teams.config_fields import MAX_PATH, matching
from holdfast.wire.mcp.catalog import _pattern

ANYWHERE = tuple(
    Text(repeated, prefix, suffix)
    for repeated in (" ", "a", "\\", "|", '"', "'", "[", "(", "\n", "`", "1", "-", ".", "a.", '\\"', " a", "${", "<!--")
    for prefix, suffix in (("", "!"), ("[", "\\"))
)
UP_TO_16_KB = (1_024, 4_096, 16_384)
ENOUGH_S = 0.02
"""Where a text took longer than this and no longer than it may, a longer one is left to the tests marked `long`."""


def test_every_regular_expression_is_listed_with_the_text_it_would_be_slow_on() -> None:
    listed = [*ADVERSARIES, *CALLED, *UNREACHED]
    assert sorted(listed) == sorted(set(listed)), "listed twice"
    assert sorted(set(discovered()) - set(listed)) == [], "add them to linear_patterns.py"
    assert sorted(set(listed) - set(discovered())) == [], "these are no longer there"
    measured = {name.split(":")[0] for name in PARSERS}
    assert sorted({name for name in CALLED.values() if name not in measured}) == [], "add them to PARSERS"
    assert other_uses() == [], "use `re.compile` and the like, so that the list is whole"


def test_every_module_that_takes_text_apart_is_listed() -> None:
    """By what nearly every parser does, so that a new one is noticed; not one that goes through a text by itself."""
    listed = {name.split(":")[0] for name in PARSERS}
    found = set(taking_apart())
    known = {module for module in found if any(name == module or name.startswith(f"{module}.") for name in listed)}
    assert sorted(found - known - NOT_FROM_OUTSIDE.keys()) == [], "add them to outside_parsers.py"
    assert sorted(NOT_FROM_OUTSIDE.keys() - (found - known)) == [], "these are listed, or no longer there"


@pytest.mark.parametrize("key", sorted(ADVERSARIES))
def test_a_regular_expression_is_linear_in_hostile_text(key: str) -> None:
    found = discovered()[key]
    works = list(uses(found))
    assert works, "listed with texts, but put together at run time: list the function that uses it"
    slow = [told for work in works for text in ADVERSARIES[key] if (told := growth(work, text, enough_s=ENOUGH_S))]
    slow += [told for work in works for text in ANYWHERE if (told := growth(work, text, UP_TO_16_KB, ENOUGH_S))]
    assert slow == []


MARKDOWN = tuple(
    map(
        Text,
        (
            "> ",
            "- ",
            "1. ",
            "- a\n",
            "  - a\n",
            "|a|\n",
            "|",
            "|-",
            "```\n",
            "<!--\n",
            "    a\n",
            "> a\nb\n",
            "` `` ",
            "\\",
            "a\n=\n",
            "* * ",
            ">\n",
            "> - ",
            "- ```\n",
            "[a]: b\n",
            "### Phase 1: a\n",
            "\\`",
        ),
    )
)
ROWS = Text("| MUST | a `b` |\n", "## Session Start\n\n| Req | Step |\n|-|-|\n")
SHELL = tuple(
    map(
        Text,
        (
            "(",
            "((",
            "$(",
            "$((",
            "`",
            "\\`",
            '"',
            "'",
            "<<a\n",
            "cat <<a\n$(cat <<b\n",
            "a;",
            "cd a;",
            "a=(",
            "${",
            '"$(',
            "|a",
            "$'",
            "<(",
            'bash -c "',
            "{ ",
            "if ",
            "\\\n",
            "git commit;",
            "cat a;",
            " ;cat >a <<",
            "sudo ",
            "env -C a ",
            "git -C a ",
            "find -exec ",
            "a=1 ",
            "eval ",
        ),
    )
)
TOML = (
    *(Text("a.", prefix, suffix) for prefix, suffix in (("", ""), ("", "a=1"), ("[", "a]\n"))),
    *(Text(repeated, "a=") for repeated in ("[", "{a=", '"', "1", "1_", "'", '"\\', "[1,")),
    *map(Text, ("[a]\n", "[[a]]\n", "#", "\n", '"a".', "[a." + "b." * 60 + "c]\n")),
)
CELLS = tuple(map(Text, ("`", "` `` ", "|", "\\`", "\\", "``` `")))

RUNS = tuple(
    Text(repeated, prefix)
    for prefix in (
        "password",
        "password send",
        "password send(--",
        "password('",
        "curl -b a=",
        "curl -b a= -b b= -b c=",
        "http -a",
        "https://a --auth a:",
        "mysql -p -p -p",
        "login -p",
        "login a password",
        "machine",
        "echo a",
        "sudo echo -n a",
        "htpasswd -b",
        "htpasswd -b -b -b a",
        "htpasswd -b a b c",
        "net use a",
        "/user:a",
        "vault login -a",
        "config set --a",
        "com2sec",
        "snmp-server community com2sec a",
        "community com2sec a b",
        "PASS abc",
        "a>AUTH",
        "a>",
        "identify",
        "username a privilege 1",
        "identified with a",
        "identified by",
        "pin",
        "pin a b c",
        "unseal key 1",
        "authorization: bearer",
        "authorization",
        "Private-Lines: 1",
        "credentials are",
        "credentials for a",
        "recovery codes: 1",
        "seed phrase:",
        "security password",
        "auth login --token",
        "ConvertTo-SecureString -String",
        "net user a",
        "user a using",
        "mc alias set a b c",
        "a login",
        "rclone pass",
        "secret set a --body",
        "password --value",
        "passphrase",
        "password from",
        "use a for the password",
        "log in as a with",
        "creds a:",
        "x -u a -p",
        "x -p a",
        "snmpget -A",
        "user a identified",
        "user a password",
        "totp secret",
        "into a (password) values",
    )
    for repeated in (" ", "\n", " a", "-a ")
)
"""What stands before a secret, and then a run where the secret belongs."""
PLACES = tuple(
    map(
        Text,
        (
            "curl -b a=",
            "cat key\n",
            "$ cat key a\n",
            "$ pass a\n",
            "aws ssm get-param ",
            "echo a | base64 -d\n",
            "qpdf --encrypt a ",
            "smbclient a ",
            "rcon -p ",
            "pdfinfo -upw ",
            "echo a | passwd ",
            "altool aaaa-aaaa-",
            "reg add password /d",
            "set password a ",
            "a : PSK ",
            "createUser a SHA a ",
            "a@a:b ",
            "[a]:1 a@a",
            "a * b ",
            "a  *  b  *",
            '"a" "b ',
            "chpasswd\na:b ",
            "wallet(0x0a",
            "accounts: [",
            "private key 0a",
            "aes.new('",
            "hmac.new('a', ",
            "jwt.sign(a, a, ",
            "connect('a', 1, 'a', ",
            "'jdbc:a', 'a', ",
            "token a:\n",
            "/reset/a/",
            "/ical/a/",
            "&_token=a",
            "[1,",
            "[ 12, 1,",
            "verification code a ",
            "pin a b c d ",
            "use 1234 to ",
            "验证码是1",
            "passphrase is ",
            "passphrase: abc ",
            "words are abc abc ",
            "1. abc 2. abc ",
            "card 4111 1111 ",
            "creds a: b / ",
            "u: a p: ",
            "WIFI:a;P:",
            "<td>password</td>",
            "changed from a to ",
            "password = 'a' + ",
            "key = ('aaaa' ",
            "{PLAIN}",
            "register => a:",
            "root:Br1dge-Over ",
            "password Br1dge9 ",
            "Br1dge-Over ",
            "密码 baozi7 ",
            "curl a",
            "-u a:",
            "://a:",
            "?token",
            "&key=a",
            "password send ",
            "a:1:b:c:",
            "a:11:b:c:",
            "a>",
            "authorization:",
            "cookie: a=",
            "bearer aaaaaaaaaaaaa ",
            "credentials('a', ",
            "client('aaaa",
            "recovery code: abc-",
            "recovery code: 1) a1b2-",
            "seed: abc abc abc ",
            "pin a b ",
            "login a /",
            '"d":"a',
            "aa_session=",
            "echo a | ",
            "htpasswd -b a ",
            "net use a /user",
            "mysql -p ",
            "://a/hooks/",
            "://a/a/a/a/a/a/",
            "insert into a (password) values ('a'), ",
            "a,password\n",
            "| a | password |\n",
            "password', '",
            "connect('a', 'b', '",
            "--auth a:",
            "-u a -p ",
            "gezd ",
            "passphrase abc ",
        ),
    )
)
TOKENS = (
    *(Text(f"-{literal}") for literal in tokens._LITERALS),
    *(Text("_a", f"-{literal}") for literal in ("eyJ", "EAA", "expo_", "mmk_", "pa-", "SG.", "t1.")),
    *map(Text, ("-SG.aaaaaaaaaaaaaaaa", "-eyJaaaaaaaa.a ", "_mmk_a", "=t1.aaaaaaaaaaaaaaaaaaaa")),
)


def _settings(text: str) -> object:
    return settings._settings.__wrapped__(text.encode())


def _many(line: str) -> Callable[[str], object]:
    return lambda text: _settings("".join(line % number for number in range(len(text) // 8)))


def _result(text: str) -> object:
    told = {"type": "tool_result", "tool_use_id": "a", "content": text, "is_error": True}
    return folded(Ledger("a"), [{"type": "user", "message": {"content": [told]}}])


PARSERS: dict[str, tuple[Callable[[str], object], tuple[Text, ...]]] = {
    "protocol.project.settings": (_settings, TOML),
    "protocol.project.settings: keys that are not known": (_many("k%d=1\n"), (Text("a"),)),
    "protocol.project.settings: tables that are not known": (_many("[k%d]\n"), (Text("a"),)),
    "protocol.project.settings: gates that are not known": (_many("[gates.K%d]\n"), (Text("a"),)),
    "protocol.project.document": (parse, (*MARKDOWN, ROWS)),
    "protocol.project.table_rows": (lambda text: cells(text, 3), CELLS),
    "protocol.checks.docs_only": (code_blocks, MARKDOWN),
    "protocol.checks.reports": (read_report, tuple(map(Text, ("---\n", "<!--", "-->", "---\nsession: a\n")))),
    "protocol.checks.globs": (lambda text: matches("**/" * 200 + "*a*a*b", text[:4096]), (Text("a/"), Text("a"))),
    "protocol.memories": (
        session_named,
        tuple(map(Text, ("session id", "session id:", "session id:*", "session id**", "\n"))),
    ),
    "protocol.serena.discovery": (
        lambda text: _expand_variables(text, {}),
        tuple(map(Text, ("${a:-", "${a}", "}", "$"))),
    ),
    "briefing.ledger.runs": (run_of, SHELL),
    "briefing.ledger.error_forms": (
        lambda text: errors_in(text, failed=True),
        tuple(
            map(
                Text,
                ("AError: a\n", "ERROR a", "FAILED AError - ", "Uncaught AError ", "E   AError\n", "\n", ": AError"),
            )
        ),
    ),
    "briefing.ledger.shell_files": (lambda text: files_in(f"cat {text}", "/"), SHELL),
    "briefing.ledger.keeping": (
        lambda text: kept(text, 2_000),
        tuple(map(Text, ("-eyJ", "password is "))),
    ),
    "briefing.ledger.folding": (_result, tuple(map(Text, ("AError ", "Error\n", "AError", "\n", "Exit code ")))),
    "identity.project": (
        lambda text: normalise_remote(_remote_url(f'[remote "origin"]\nurl={text}') or ""),
        tuple(map(Text, ("a", "@", ":", "/", "[a]\n", '[remote "a"]\nurl=b\n', "../", "%41"))),
    ),
    "bridge.chat.splitting": (lambda text: split(text, 4_096), tuple(map(Text, ("a", "\n", "```\n", "a ", "```")))),
    "bridge.chat.formatting": (formatted, tuple(map(Text, ("```\n", "```a\n", "`", "**", "[", "\n", "# a\n")))),
    "bridge.session_files": (lambda text: session_in(text.encode()), tuple(map(Text, ("[", '{"a":', '"', "1")))),
    "redaction": (
        masked,
        (
            Text("-eyJ", "1 "),
            *map(Text, ("password=hunter22\n", "password=hunter22 [", "[redacted]a=", "password is ", "Set-Cookie: ")),
        ),
    ),
    "redaction.contexts": (lambda text: list(context_spans(text, STRINGS.held_by(text.lower()))), (*RUNS, *PLACES)),
    "redaction.tables": (
        lambda text: list(table_spans(text, text.lower())),
        (
            Text("a,b\n", "name,password\n"),
            Text("password,\n"),
            Text("|a|b|\n", "|name|password|\n|-|-|\n"),
            Text("|password|\n|-|\n"),
            Text("('a','b'),", "INSERT INTO t (name, password) VALUES "),
            Text("INSERT INTO t (password) VALUES ('a');"),
            Text("into a (", "password"),
            Text("('", "INSERT INTO t (password) VALUES "),
        ),
    ),
    "redaction.tokens": (lambda text: list(tokens.token_spans(text)), TOKENS),
    "relay.ends": (
        lambda text: members(text.encode(), text.encode()),
        (Text('\\"', '{"'), Text("\\", '"'), Text('{"id":1,', "{"), *map(Text, ('"', '{"a":', "{", '"\\'))),
    ),
    "history.search": (lambda text: line_with(text, [Term(("aab",)), Term(("b",))]), (Text("a"), Text("a\n"))),
    "dashboard.find": (
        lambda text: looking_for(["aab", "a"], terms_of('aab "a b" a'), sees_secrets=True).line(text),
        (Text("a"), Text("aab "), Text("a\n"), Text("a b "), Text(" ")),
    ),
    "reasoning.search": (
        lambda text: snippet(text, [Term(("aab",)), Term(("a", "b")), Term(("a",), beginning=True)]),
        (Text("a"), Text("a "), Text("_a"), Text(" ", "a"), Text("数"), Text("é")),
    ),
    "handoff.validation": (_reported_as_changed, (Text("1"), Text("1, "), Text(CHANGED))),
    "wire.mcp.catalog": (_pattern("thoughts://{name}/{number}").fullmatch, (Text("a", "thoughts://"), Text("/a"))),
    "teams.config_fields": (lambda text: matching("[a-z]+[0-9]*", "a name", "a1")(text[:MAX_PATH]), (Text("a"),)),
    **OUTSIDE,
}
"""What reads text from outside: the parser, and the texts that a slow one would be slowest on."""
SLOWER = (256, 1_024, 4_096, 16_384)
"""Sizes for parsers in Python, of which a megabyte takes seconds however it is read; `long` has the rest."""


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_a_parser_is_linear_in_hostile_text(name: str) -> None:
    work, texts = PARSERS[name]
    assert [told for text in texts if (told := growth(work, text, SLOWER, ENOUGH_S))] == []


@pytest.mark.long
@pytest.mark.parametrize("key", sorted(ADVERSARIES))
def test_a_regular_expression_is_linear_up_to_a_megabyte(key: str) -> None:
    works = list(uses(discovered()[key]))
    assert [told for work in works for text in ADVERSARIES[key] if (told := growth(work, text))] == []


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(PARSERS))
def test_a_parser_is_linear_up_to_a_megabyte(name: str) -> None:
    work, texts = PARSERS[name]
    assert [told for text in texts if (told := growth(work, text))] == []


def test_a_line_of_settings_that_is_too_long_is_named() -> None:
    for line in ("a." * 120 + "a = 1", "a" * 70_000 + " = 1"):
        (fault,) = settings._settings(f'protocol = "simple"\n{line}\n'.encode()).faults
        assert fault.line == 2
        assert "Break it into several" in fault.message
