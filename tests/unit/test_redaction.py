"""Secrets never reach the store; what an agent needs to find its work again stays."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.redaction import MASK, contexts, masked, tokens

# Put together here, so that no scanner takes this file for a leak.
ALNUM = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
KEY_BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw"

SECRETS = [
    ("ANTHROPIC_API_KEY=" + "sk-ant-" + f"api03-{ALNUM}", ALNUM),
    ("the key is sk-" + "proj-" + ALNUM, ALNUM),
    ("sk-" + ALNUM, ALNUM),
    ("git clone https://x:" + "ghp_" + f"{ALNUM}@github.com/me/it.git", ALNUM),
    ("token github_" + f"pat_{ALNUM}", ALNUM),
    ("glpat-" + ALNUM[:20], ALNUM[:20]),
    ("AWS " + "AKIA" + "IOSFODNN7EXAMPLE is it", "IOSFODNN7EXAMPLE"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
    ("slack xoxb" + "-123456789012-abcdefGHIJ", "123456789012-abcdefGHIJ"),
    ("https://hooks.slack.com/services/" + "T000/B000/XXXXXXXX", "B000/XXXXXXXX"),
    ("eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN", "dozjgNryP4J3jVmN"),
    ("hf_" + ALNUM, ALNUM),
    ("npm_" + ALNUM, ALNUM),
    ("AIza" + ALNUM, ALNUM),
    ("stripe sk_" + f"live_{ALNUM[:24]}", ALNUM[:24]),
    ("bot 123456789:AAF" + ALNUM, ALNUM),
    ("https://api.telegram.org/bot123456789:AAF" + f"{ALNUM}/getMe", ALNUM),
    ("curl -H 'Authorization: Bearer abcdef.ghijkl' https://x", "abcdef.ghijkl"),
    ('{"Authorization": "Basic dXNlcjpwYXNz"}', "dXNlcjpwYXNz"),
    ("Authorization: token hunter2", "hunter2"),
    ("X-Api-Key: hunter2hunter2", "hunter2"),
    ("Cookie: session=hunter2; other=hunter3", "hunter2"),
    ("psql postgresql://app:hunter2@db.internal:5432/app", "hunter2"),
    ("redis://:hunter2@cache:6379/0", "hunter2"),
    ("postgres://app:p@ss@word@db/app", "p@ss"),
    ("GET /x?access_token=hunter2&page=3", "hunter2"),
    ("mysql -u root -phunter2 shop", "hunter2"),
    ("curl -u admin:hunter2 https://x", "hunter2"),
    ("sshpass -p hunter2 ssh host", "hunter2"),
    ("tool --password hunter2 --force", "hunter2"),
    ("tool --api-key=hunter2", "hunter2"),
    ("tool --token 'two words'", "two words"),
    ("docker login -u me -p hunter2 registry.example.org", "hunter2"),
    ("aws configure set aws_secret_access_key wJalrXUtnFEMIK7MDENG", "wJalrXUtnFEMI"),
    ("The password is hunter2, by the way.", "hunter2"),
    ("PASSWORD=hunter", "hunter"),
    ("export DB_PASSWORD='correct horse battery'", "correct horse"),
    ("password: hunter2", "hunter2"),
    ('"client_secret": "abc-def-ghi"', "abc-def-ghi"),
    ("PGPASSWORD=x psql", "=x "),
    ("SECRET_TOKEN=abc", "abc"),
    ("AccountKey=abc123==;EndpointSuffix=core", "abc123"),
    (f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_BODY}\n-----END RSA PRIVATE KEY-----", KEY_BODY),
    (f"-----BEGIN OPENSSH PRIVATE KEY-----\n{KEY_BODY}", KEY_BODY),
]

HARMLESS = [
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "git show 3f78685 -- src/app.py",
    "session 0d44f88f-802c-4916-ac2f-897599b5192c",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "Fix the login: the token is checked twice.",
    "The password is checked twice, and the token is 1200 long.",
    "max_tokens: 1200",
    "tokens = fold(tokens)",
    "token = next(tokens)",
    "password = getpass.getpass()",
    "PASSWORD=$DB_PASSWORD",
    "curl -H 'Authorization: Bearer $TOKEN' https://x",
    "def check(password: str) -> bool:",
    "src/auth/token_store.py, tests/test_password.py",
    "sk-learn-example-project/notes.md",
    "http://127.0.0.1:8181/mcp and me@example.org",
    "PWD=/home/me/project",
    "Basic understanding of bearer responsibilities",
    "AssertionError: assert 3 == 4",
    "docker run -p 8080:80 web",
    "12:30:45 started",
]


def test_every_rule_and_every_form_can_be_compiled() -> None:
    """They are compiled when a text asks for them; a broken one would be noticed by that text's reader."""
    assert all(contexts._compiled(rule.source) for rule in contexts.RULES)
    assert all(tokens._compiled(*source) for source in tokens._SOURCES)


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_taken_out(text: str, secret: str) -> None:
    clean = masked(text)
    assert secret not in clean
    assert MASK in clean


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_taken_out_of_the_middle_of_a_text(text: str, secret: str) -> None:
    clean = masked(f"First I said hello.\n{text}\nThen we went on.")
    assert secret not in clean
    assert clean.startswith("First I said hello.\n")


def test_what_stands_around_a_secret_stays() -> None:
    assert masked("psql postgresql://app:hunter2@db:5432/app -c 'select 1'") == (
        f"psql postgresql://app:{MASK}@db:5432/app -c 'select 1'"
    )
    assert masked("DEBUG=1 API_KEY=abc123 ./run --fast") == f"DEBUG=1 API_KEY={MASK} ./run --fast"


PIECES = st.sampled_from(
    [
        *(text for text, _ in SECRETS),
        *HARMLESS,
        MASK,
        "=",
        ":",
        " ",
        "\n",
        '"',
        "'",
        "--",
        "@",
        "password",
        "token",
        "//",
    ]
)
TEXTS = st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=8).map("".join))


@given(TEXTS)
@example("mysql" + " -p0" * 9)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = masked(text)
    assert masked(once) == once


@given(TEXTS)
def test_a_redacted_text_is_not_much_longer(text: str) -> None:
    assert len(masked(text)) <= 4 * len(text) + len(MASK)


@given(
    st.text(
        alphabet=st.characters(whitelist_categories=("Ll", "Lu", "Nd"), max_codepoint=127), min_size=24, max_size=60
    )
)
def test_no_key_with_a_known_beginning_survives(body: str) -> None:
    for beginning in ("sk-" + "ant-", "ghp" + "_", "hf" + "_", "xox" + "b-", "github" + "_pat_"):
        assert body not in masked(f"run it with {beginning}{body} please")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["a", "password", "-", "://", "x=", "sk-a", '="', "&", "_", "mysql ", "eyJaaaaaaaa."])
def test_no_text_takes_time_out_of_proportion(piece: str) -> None:
    text = (piece * 20_000)[:20_000]
    assert len(masked(text)) <= 4 * len(text)


@pytest.mark.parametrize(
    "text",
    [
        "--- PASS: TestLogin2 (0.00s)",
        "The password is required!",
        "send the password to bob@example.org",
        "Set-Cookie: lang=en; Path=/",
        'mysql -u root -p"$DB_PASSWORD" shop',
        "docker run --name mysql -p3306:3306 mysql:8",
        "next_token=eyJsaXN0IjoxMjM0NTY3",
        "docker build --secret id=npm,src=.npmrc .",
    ],
)
def test_what_only_speaks_of_secrets_stays(text: str) -> None:
    assert masked(text) == text


PLAIN = (
    "Something to be told of.",
    "/home/dev/project",
    "2026-11-17T15:06:50Z",
    "src/app.py",
    "Fix the login test 12",
    "It doesn't start; see issue #12.",
)


def test_a_plain_text_is_told_without_compiling_any_rule() -> None:
    """A daemon's first hook waits for whatever its briefing's titles and paths need."""
    script = (
        "import sys\nfrom holdfast.redaction import masked\n"
        "assert [masked(text) for text in sys.argv[1:]] == sys.argv[1:]\n"
        "print([name for name in sys.modules if name.startswith('holdfast.redaction.')])"
    )
    done = subprocess.run([sys.executable, "-c", script, *PLAIN], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['holdfast.redaction.mask']"
