"""What an agent spawns at every start and every tool call imports nothing it can do without."""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast.relay
from holdfast.cli import COMMANDS
from holdfast.process import guard_process

RELAY = Path(holdfast.relay.__file__).parent

RELAY_ALLOWED = {
    "holdfast",
    "holdfast.__main__",
    "holdfast.relay",
    "holdfast.relay.lines",
    "holdfast.relay.link",
    "holdfast.relay.loop",
    "holdfast.relay.main",
    "holdfast.relay.place",
    "holdfast.relay.session",
    "holdfast.version",
}
# Each of these alone would cost the relay a tenth of its start-up or more.
DEAR = {
    "argparse",
    "asyncio",
    "dataclasses",
    "hashlib",
    "pathlib",
    "selectors",
    "signal",
    "socket",
    "subprocess",
}
DEAR |= {"threading", "typing", "uuid", "logging", "inspect", "traceback", "urllib"}


def modules(program: str, *flags: str) -> set[str]:
    done = subprocess.run([sys.executable, *flags, "-c", program], capture_output=True, check=True)
    return set(json.loads(done.stdout))


def test_the_dispatcher_imports_nothing_before_it_knows_the_command() -> None:
    bare = modules("import sys; names = list(sys.modules); import json; print(json.dumps(names))")
    program = "import sys, holdfast.__main__; names = list(sys.modules); import json; print(json.dumps(names))"
    assert modules(program) - bare == {"holdfast", "holdfast.__main__"}


def test_the_guard_of_an_agent_imports_no_more_than_it_must() -> None:
    """Every start of an agent waits for it."""
    program = (
        f"import sys; sys.path.append({str(Path(guard_process.__file__).parent)!r}); import guard_process;"
        " names = list(sys.modules); import json; print(json.dumps(names))"
    )
    found = modules(program, "-I", "-S")
    assert "signal" in found
    assert not found & (DEAR - {"signal"} | {"contextlib", "re"})


def test_a_served_relay_has_imported_only_the_standard_library_and_itself(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "bare = set(sys.modules)\n"
        f"sys.argv = ['holdfast', 'mcp', '--home', {str(tmp_path)!r}]\n"
        "from holdfast.relay import loop\n"
        "loop.Loop.run = lambda self: None\n"
        "from holdfast.__main__ import main\n"
        "assert main() == 0\n"
        "import json\n"
        "print(json.dumps(sorted(set(sys.modules) - bare)))\n"
    )
    loaded = modules(program)
    assert {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names} == RELAY_ALLOWED
    assert not loaded & DEAR


def test_the_hook_client_loads_three_small_modules_more_than_an_empty_python() -> None:
    bare = modules("import sys, os; names = list(sys.modules); import json; print(json.dumps(names))", "-I", "-S")
    program = (
        "import sys\n"
        f"sys.argv = [{str(RELAY / 'hook.py')!r}, '--help']\n"
        "source = open(sys.argv[0]).read()\n"
        "out, sys.stdout = sys.stdout, sys.stderr\n"
        "try:\n"
        "    exec(compile(source, sys.argv[0], 'exec'), {'__name__': '__main__', '__file__': sys.argv[0]})\n"
        "except SystemExit as end:\n"
        "    assert end.code == 0\n"
        "names = list(sys.modules)\n"
        "import json\n"
        "out.write(json.dumps(names))\n"
    )
    assert modules(program, "-I", "-S") - bare == {"_socket", "select", "hook_client"}


def test_a_command_imports_no_other_command() -> None:
    names = "sorted(name for name in sys.modules if name.startswith('holdfast.cli.'))"
    program = (
        f"import json, sys, holdfast.cli as cli; cli.build_parser(['daemon', 'status']); print(json.dumps({names}))"
    )
    assert modules(program) == {"holdfast.cli.common", "holdfast.cli.control", "holdfast.cli.daemon"}
    assert "asyncio" not in modules(program.replace(names, "list(sys.modules)"))


@pytest.mark.parametrize("module", sorted({command.module for command in COMMANDS if command.module}))
def test_every_command_is_found_in_the_module_that_is_named_for_it(module: str) -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    importlib.import_module(f"holdfast.cli.{module}").add_to(commands)
    assert {*commands.choices} == {one.name.split()[-1] for one in COMMANDS if one.module == module}
