"""`holdfast key`: the owner's key, and additional keys for HTTP clients."""

from __future__ import annotations

import argparse
import json
import sys

from holdfast.cli.common import add_home, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.cli.table import show_table
from holdfast.files.private import read_or_make
from holdfast.process.home_lock import make_home
from holdfast.text.terminal import say
from holdfast.times import iso, local


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    key = commands.add_parser(
        "key",
        description="Print the owner's key, which HTTP clients send as a bearer token, or manage additional keys.",
    )
    add_home(key)
    key.set_defaults(run=print_key)
    actions = key.add_subparsers(metavar="<action>", title="additional keys")

    create = _action(actions, "create", "create a named key and print it, this once")
    create.add_argument("name", metavar="NAME", help="1 to 64 of A-Z a-z 0-9 . _ -")
    create.add_argument(
        "--scope",
        choices=("admin", "read"),
        default="read",
        help="admin may do everything, and is needed for MCP; read is read-only (default)",
    )
    create.add_argument(
        "--team",
        action="append",
        metavar="NAME",
        dest="teams",
        help="limit it to what concerns this team: its bridge target and its conversations (may be repeated)",
    )
    create.set_defaults(run=create_key)

    listed = _action(actions, "list", "list the keys, without their secrets")
    listed.add_argument("--json", action="store_true", help="print them as JSON")
    listed.set_defaults(run=list_keys)

    revoke = _action(actions, "revoke", "revoke a key")
    revoke.add_argument("name", metavar="NAME")
    revoke.set_defaults(run=revoke_key)

    rotate = _action(actions, "rotate-signing", "sign reconnect tokens with a new key; existing tokens stay valid")
    rotate.set_defaults(run=rotate_signing)


def print_key(options: argparse.Namespace) -> int:
    """Print the owner's key; it is created if there is none yet."""
    settings = settings_of(options)
    make_home(settings.home)
    say(read_or_make(settings.key_file))
    return 0


def create_key(options: argparse.Namespace) -> int:
    args = {"name": options.name, "scope": options.scope, "teams": options.teams}
    say(ask_or_do(settings_of(options), "key-create", args, show_progress)["key"])
    say(f"This is the key {options.name} ({options.scope}). It is not shown again.", file=sys.stderr)
    return 0


def list_keys(options: argparse.Namespace) -> int:
    keys = ask_or_do(settings_of(options), "key-list", {}, show_progress)["keys"]
    if options.json:
        say(json.dumps(keys))
        return 0
    rows = [("NAME", "SCOPE", "CREATED", "STATE"), ("owner", "admin", "-", "active (`holdfast key` prints it)")]
    for key in keys:
        state = "active" if key["revoked_at"] is None else f"revoked {local(iso(key['revoked_at']))}"
        limited = f"; limited to {', '.join(key['teams'])}" if key["teams"] else ""
        rows.append((key["name"], key["scope"], local(iso(key["created_at"])), f"{state}{limited}"))
    show_table(rows, whole=("NAME", "CREATED"))
    return 0


def revoke_key(options: argparse.Namespace) -> int:
    ask_or_do(settings_of(options), "key-revoke", {"name": options.name}, show_progress)
    say(f"The key {options.name} is revoked.")
    return 0


def rotate_signing(options: argparse.Namespace) -> int:
    kid = ask_or_do(settings_of(options), "key-rotate-signing", {}, show_progress)["kid"]
    say(f"Reconnect tokens are signed with key {kid} from now on. Older tokens stay valid until they expire.")
    return 0


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text)
    # Without a default, so that the action's own option does not override `holdfast key --home DIR list`.
    parser.add_argument("--home", metavar="DIR", default=argparse.SUPPRESS, help="the data directory (HOLDFAST_HOME)")
    return parser
