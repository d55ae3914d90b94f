"""`holdfast key` and `holdfast audit`, with and without a daemon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.installation import Installation
from tests.process.agent import Agent
from tests.shared_daemon import Guest

from holdfast.client import Client, RestError


def test_a_key_is_honoured_from_its_creation_to_its_revocation(shared: Guest) -> None:
    name = shared.caller("phone")
    made = shared.run("key", "create", name)
    assert made.returncode == 0, made.stderr
    assert "not shown again" in made.stderr
    phone = Client(shared.address(), made.stdout.strip())
    assert phone.sessions(limit=1) is not None
    with pytest.raises(RestError) as refused:
        phone.get_token("some-session")
    assert refused.value.status == 403

    listed = shared.run("key", "list").stdout
    assert "read" in _of_key(name, listed) and "owner" in listed
    assert made.stdout.strip() not in listed

    assert shared.run("key", "revoke", name).returncode == 0
    with pytest.raises(RestError) as gone:
        phone.sessions()
    assert gone.value.status == 401
    assert "revoked" in _of_key(name, shared.run("key", "list").stdout)


def _of_key(name: str, listed: str) -> str:
    (line,) = [line for line in listed.splitlines() if name in line]
    return line


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


def test_a_bad_or_taken_name_is_refused_with_the_reason(shared_embedded: Guest) -> None:
    taken = shared_embedded.caller("a")
    assert shared_embedded.run("key", "create", taken).returncode == 0
    for name, reason in ((taken, "already"), ("owner", "owner"), ("a b", "name"), ("x" * 65, "64")):
        refused = shared_embedded.run("key", "create", name)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert reason in refused.stderr
    nobody = shared_embedded.caller("nobody")
    assert "holdfast key list" in shared_embedded.run("key", "revoke", nobody).stderr


def test_the_home_may_be_named_before_or_after_the_action(embedded: Installation, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    assert embedded.run("key", "--home", other, "create", "before").returncode == 0
    assert embedded.run("key", "create", "after", "--home", other).returncode == 0
    listed = embedded.run("key", "list", "--home", other).stdout
    assert "before" in listed and "after" in listed
    assert "before" not in embedded.run("key", "list").stdout
    taken = embedded.run("key", "create", "before", "--home", other)
    assert taken.returncode == 1 and "already" in taken.stderr, "without a daemon too"


def test_tokens_given_out_before_the_signing_key_was_rotated_stay_good(shared: Guest, project: Path) -> None:
    """On the shared daemons, because this is what it promises: whoever has a token does not notice."""
    session = _session_of(shared, project, "one")
    client = Client(shared.address(), shared.key())
    before = client.get_token(session).reconnect_token
    rotated = shared.run("key", "rotate-signing")
    assert rotated.returncode == 0, rotated.stderr
    after = client.get_token(session).reconnect_token
    for token in (before, after):
        assert client.reconnect(session, token).success


def _session_of(holdfast: Installation, project: Path, name: str) -> str:
    """The session of an agent that was here and is gone."""
    with Agent(holdfast, project, session=name) as agent:
        return str(agent.init("get_state")["connection"]["session_id"])


def test_the_audit_is_shown_newest_first_without_any_token(shared_embedded: Guest, project: Path) -> None:
    one, two = (_session_of(shared_embedded, project, name) for name in ("one", "two"))
    assert "No audit entries" in shared_embedded.run("audit", "--session", one).stdout
    client = Client(shared_embedded.address(), shared_embedded.key())
    token = client.get_token(one).reconnect_token
    client.reconnect(one, token)
    with pytest.raises(RestError):
        client.reconnect(two, token)

    shown = shared_embedded.run("audit").stdout
    assert token not in shown
    header, *lines = shown.splitlines()
    assert header.split() == ["TIME", "ACTION", "OUTCOME", "SESSION", "KEY", "ADDRESS", "CLIENT"]
    # Nothing else happens on this daemon meanwhile: what was done last stands first.
    assert [line.split()[2:5] for line in lines[:3]] == [
        ["reconnect", "session_id_mismatch", two],
        ["reconnect", "ok", one],
        ["token.issue", "ok", one],
    ]
    of_one = json.loads(shared_embedded.run("audit", "--json", "--session", one).stdout)
    assert [entry["action"] for entry in of_one] == ["reconnect", "token.issue"]
    assert {entry["principal"] for entry in of_one} == {"owner"}
    assert len(json.loads(shared_embedded.run("audit", "--json", "--limit", "1").stdout)) == 1


def test_the_audit_says_what_it_needs(embedded: Installation, shared_embedded: Guest) -> None:
    without = embedded.run("audit")
    assert without.returncode == 1 and "holdfast serve" in without.stderr
    for arguments, reason in ((("--limit", "0"), "--limit"), (("--session", "a b"), "session_id")):
        refused = shared_embedded.run("audit", *arguments)
        assert refused.returncode == 1 and reason in refused.stderr


def test_the_audit_says_when_http_is_off(embedded: Installation, shared_embedded: Guest, project: Path) -> None:
    port = shared_embedded.address().rpartition(":")[2]
    embedded.settings["HOLDFAST_PORT"] = port
    # A relay's daemon serves on without the port that somebody else has.
    with Agent(embedded, project) as agent:
        agent.init("get_state")
    refused = embedded.run("audit")
    assert refused.returncode == 1
    assert port in refused.stderr and "HTTP" in refused.stderr
