"""`holdfast key` and `holdfast audit`, with and without a daemon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.installation import Installation
from tests.process.agent import Agent

from holdfast.client import Client, RestError


def test_a_key_is_honoured_from_its_creation_to_its_revocation(holdfast: Installation) -> None:
    made = holdfast.run("key", "create", "phone")
    assert made.returncode == 0, made.stderr
    assert "not shown again" in made.stderr
    phone = Client(holdfast.address(), made.stdout.strip())
    assert phone.sessions().sessions == ()
    with pytest.raises(RestError) as refused:
        phone.get_token("some-session")
    assert refused.value.status == 403

    listed = holdfast.run("key", "list").stdout
    assert "phone" in listed and "read" in listed and "owner" in listed
    assert made.stdout.strip() not in listed

    assert holdfast.run("key", "revoke", "phone").returncode == 0
    with pytest.raises(RestError) as gone:
        phone.sessions()
    assert gone.value.status == 401
    assert "revoked" in holdfast.run("key", "list").stdout


def test_an_administrators_key_may_do_everything_the_owners_may(embedded: Installation, project: Path) -> None:
    # Made while no daemon runs: it is the store that remembers it.
    made = embedded.run("key", "create", "ops", "--scope", "admin")
    assert made.returncode == 0, made.stderr
    embedded.serve()
    with Agent(embedded, project) as agent:
        agent.think("one")
    ops = Client(embedded.address(), made.stdout.strip())
    (session,) = ops.active_sessions().sessions
    ops.reconnect(session.session_id, ops.get_token(session.session_id).reconnect_token)
    assert {entry.principal for entry in ops.audit().entries} == {"ops"}


def test_a_bad_or_taken_name_is_refused_with_the_reason(embedded: Installation) -> None:
    assert embedded.run("key", "create", "a").returncode == 0
    for name, reason in (("a", "already"), ("owner", "owner"), ("a b", "name"), ("x" * 65, "64")):
        refused = embedded.run("key", "create", name)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert reason in refused.stderr
    assert "holdfast key list" in embedded.run("key", "revoke", "nobody").stderr


def test_the_home_may_be_named_before_or_after_the_action(embedded: Installation, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    assert embedded.run("key", "--home", other, "create", "before").returncode == 0
    assert embedded.run("key", "create", "after", "--home", other).returncode == 0
    listed = embedded.run("key", "list", "--home", other).stdout
    assert "before" in listed and "after" in listed
    assert "before" not in embedded.run("key", "list").stdout


def test_tokens_given_out_before_the_signing_key_was_rotated_stay_good(holdfast: Installation, project: Path) -> None:
    with Agent(holdfast, project) as agent:
        agent.think("one")
    client = Client(holdfast.address(), holdfast.key())
    (session,) = client.active_sessions().sessions
    before = client.get_token(session.session_id).reconnect_token
    rotated = holdfast.run("key", "rotate-signing")
    assert rotated.returncode == 0, rotated.stderr
    after = client.get_token(session.session_id).reconnect_token
    for token in (before, after):
        assert client.reconnect(session.session_id, token).success


def test_the_audit_is_shown_newest_first_without_any_token(embedded: Installation, project: Path) -> None:
    embedded.serve()
    assert "Nothing" in embedded.run("audit").stdout
    for name in ("one", "two"):
        with Agent(embedded, project, session=name) as agent:
            agent.think(name)
    client = Client(embedded.address(), embedded.key())
    two, one = client.active_sessions().sessions
    token = client.get_token(one.session_id).reconnect_token
    client.reconnect(one.session_id, token)
    with pytest.raises(RestError):
        client.reconnect(two.session_id, token)

    shown = embedded.run("audit").stdout
    assert token not in shown
    header, *lines = shown.splitlines()
    assert header.split() == ["TIME", "ACTION", "OUTCOME", "SESSION", "KEY", "ADDRESS", "CLIENT"]
    assert [line.split()[1:4] for line in lines] == [
        ["reconnect", "session_id_mismatch", two.session_id],
        ["reconnect", "ok", one.session_id],
        ["token.issue", "ok", one.session_id],
    ]
    of_one = json.loads(embedded.run("audit", "--json", "--session", one.session_id).stdout)
    assert [entry["action"] for entry in of_one] == ["reconnect", "token.issue"]
    assert {entry["principal"] for entry in of_one} == {"owner"}
    assert len(json.loads(embedded.run("audit", "--json", "--limit", "1").stdout)) == 1


def test_the_audit_says_what_it_needs(embedded: Installation) -> None:
    without = embedded.run("audit")
    assert without.returncode == 1 and "holdfast serve" in without.stderr
    embedded.serve()
    for arguments, reason in ((("--limit", "0"), "--limit"), (("--session", "a b"), "session_id")):
        refused = embedded.run("audit", *arguments)
        assert refused.returncode == 1 and reason in refused.stderr


def test_the_audit_says_when_http_is_off(embedded: Installation, tmp_path: Path) -> None:
    embedded.serve()
    port = embedded.address().rpartition(":")[2]
    other = Installation(tmp_path / "other")
    other.settings["HOLDFAST_PORT"] = port
    try:
        # A relay's daemon serves on without the port that somebody else has.
        other.listed_tools()
        refused = other.run("audit")
    finally:
        other.close()
    assert refused.returncode == 1
    assert port in refused.stderr and "HTTP" in refused.stderr
