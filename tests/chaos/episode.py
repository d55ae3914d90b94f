"""An episode: one world, one fault, clients at work, and the checks at its end."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict
from tests.chaos.checker import check
from tests.chaos.damage import Told, check_loss, check_tracebacks, lost_rows, readable_rows
from tests.chaos.damages import DAMAGES, Damage, end_daemon
from tests.chaos.effects import Circumstances
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.history import History, Outcome
from tests.chaos.plan import ROLES, Plan
from tests.chaos.server import Postgres
from tests.chaos.state import State, copy_database, read_doors, read_store
from tests.chaos.violation import Violation
from tests.chaos.workload import ANSWER_SECONDS, Client, Shared, judge
from tests.chaos.world import RestRefused, World
from tests.installation import wait_until
from tests.process.agent import Agent

from holdfast.errors import HoldfastError

PROGRESS = 30
"""How many operations are done between two strikes, at least."""


class Episode:
    """One fault on one engine."""

    def __init__(self, plan: Plan, world: World, postgres: Postgres | None, *, compiler: bool = True) -> None:
        """`compiler`: whether a fault may use a C compiler where there is one."""
        self.compiler = compiler
        self.plan, self.world = plan, world
        self._postgres = postgres
        self.fault = FAULTS.get(plan.fault, FAULTS["none"])
        world.folder.mkdir(parents=True, exist_ok=True)
        (world.folder / "plan.json").write_text(json.dumps(plan.as_json()))
        self.history = History(world.folder / "history.jsonl")
        self.shared = Shared()
        self.clients = [Client(world, self.history, self.shared, role, plan.clients[role.name]) for role in ROLES]
        self.violations: list[Violation] = []
        self.flags: dict[str, Any] = {}

    def run(self) -> list[Violation]:
        """All of it; what was found."""
        damage = DAMAGES.get(self.plan.fault)
        try:
            with self.fault.around(self):
                try:
                    self.world.make()
                    if damage is not None:
                        self._run_damage(damage)
                    else:
                        self._run_fault(self.fault)
                finally:
                    self.world.close()
        finally:
            self.history.close()
        return self.violations

    # -- faults that leave the data alone -----------------------------------------------------------------------------

    def _run_fault(self, fault: Fault) -> None:
        fault.begin(self)
        self._work(lambda chance: fault.strike(self, chance))
        fault.heal(self)
        if self._clients_end() and self._serves_again():
            state = self._read(self._known_asks())
            verified = Told.by(self.world.command("verify"))
            if verified.status != 0 or "Nothing was lost or changed" not in verified.text:
                text = f"nothing was damaged, and `verify` exits {verified.status}: {verified.text[-400:]}"
                self.violations.append(Violation("verify-false-alarm", text, []))
            self.violations += self.stopped()
            final = read_store(self.world)
            state.tables, state.transcripts = final.tables, final.transcripts
            self.violations += check(self.history, state, fault.given)

    def _work(self, strike: Callable[[random.Random], None]) -> None:
        """Let the clients work, with the strikes of the plan among it."""
        for client in self.clients:
            client.start()
        if self._progress(60):
            for planned in self.plan.strikes:
                time.sleep(planned.pause)
                strike(random.Random(planned.chance))
                self._progress(30)
        else:
            self.violations.append(Violation("not-served", "the clients could not begin to work", []))
        time.sleep(self.plan.rest)
        self.shared.over.set()

    def _progress(self, limit: float) -> bool:
        """Wait until the clients get something done; where they cannot, the checks at the end say so."""
        enough = self.history.count(Outcome.OK) + PROGRESS
        try:
            wait_until(lambda: self.history.count(Outcome.OK) >= enough, "the clients get on", limit)
        except TimeoutError:
            return False
        return True

    def _clients_end(self) -> bool:
        for client in self.clients:
            if not client.join(2 * ANSWER_SECONDS):
                self.violations.append(Violation("client-stuck", f"{client.name} does not come to an end", []))
                return False
            if client.failure is not None:
                raise client.failure
        return True

    def _serves_again(self) -> bool:
        """Whether somebody new is served, after the fault is over."""
        try:
            with Agent(self.world, self.world.project("beta"), session="chaos-probe") as probe:
                probe.answer(
                    probe.ask("tools/call", {"name": "thought", "arguments": _PROBE}),
                    ANSWER_SECONDS,
                )
            self.world.wait_for_daemon()
        except (TimeoutError, EOFError, AssertionError) as error:
            self.violations.append(Violation("not-served", f"after the fault a new client is not served: {error}", []))
            return False
        return True

    def _known_asks(self) -> list[str]:
        asks = [op.reply["askId"] for op in self.history.of("ask") if op.ok and "askId" in op.reply]
        return list(dict.fromkeys(asks))

    def _read(self, asks: list[str]) -> State:
        """The state as users see it; what cannot be read is a violation."""
        state = read_store(self.world)
        try:
            read_doors(self.world, state, asks)
        except (AssertionError, OSError, EOFError, HoldfastError, RestRefused) as error:
            self.violations.append(Violation("unreadable", f"the state cannot be read: {str(error)[:300]}", []))
        return state

    def stopped(self) -> list[Violation]:
        """Stop the daemon; processes that are left are violations."""
        left = self.world.stop()
        return (
            [Violation("left-running", f"after `holdfast stop` there is still {'; '.join(left)}", [])] if left else []
        )

    def call(self, agent: Agent, client: str, kind: str, tool: str, mark: str, arguments: dict[str, Any]) -> None:
        """One call of a client that belongs to the nemesis."""
        op = self.history.invoke(client, kind, mark, arguments)
        try:
            answer = agent.answer(agent.ask("tools/call", {"name": tool, "arguments": arguments}), ANSWER_SECONDS)
        except TimeoutError as error:
            self.history.complete(op, Outcome.UNANSWERED, error=str(error))
        except (EOFError, OSError) as error:
            self.history.complete(op, Outcome.UNKNOWN, error=str(error))
        else:
            self.history.complete(op, *judge(answer))

    # -- faults that destroy data -------------------------------------------------------------------------------------

    def _run_damage(self, damage: Damage) -> None:
        chance = random.Random(self.plan.strikes[0].chance)
        before = State()
        if damage.running:

            def strike(_: random.Random) -> None:
                nonlocal before
                before = read_store(self.world)
                damage.destroy(self, before, chance)

            self._work(strike)
            self._clients_end()
            self.world.stop()
        else:
            self._work(lambda _: None)
            if not self._clients_end():
                return
            end_daemon(self, damage)
            before = read_store(self.world)
            given = Circumstances(asks_may_fail=True)
            self.violations += check(self.history, before, given)
            damage.destroy(self, before, chance)
        self._judge_damage(before, put_back=damage.running)

    def _judge_damage(self, before: State, *, put_back: bool) -> None:
        """Look whether all that is lost is told; `put_back`: a daemon that had the file open loses nothing at all."""
        readable = set()
        if self.world.engine == "sqlite":
            copy = self.world.folder / "damaged.db"
            copy_database(self.world.database, copy)
            readable = readable_rows(copy, before)
        bytes_before = self._bytes()
        first = Told.by(self.world.command("verify"))
        if self._bytes() != bytes_before:
            self.violations.append(Violation("verify-changed", "`verify` changed the database it was to look at", []))
        self.world.unstop()
        served = self._serves_again()
        again = Told.by(self.world.command("verify"))
        said = {"verify": first, "verify again": again, "status": Told.by(self.world.command("status"))}
        self.violations += check_tracebacks(said)
        for name, told in said.items():
            (self.world.logs / f"{name}.txt").write_text(f"exit {told.status}\n{told.text}")
        self.world.stop()
        if served:
            lost = lost_rows(before, read_store(self.world))
            self.violations += check_loss(lost, readable, [first, again])
            if put_back and lost:
                self.violations.append(
                    Violation("not-put-back", f"{len(lost)} rows that the daemon had open are lost", [])
                )

    def _bytes(self) -> list[bytes]:
        files = [Path(f"{self.world.database}{ending}") for ending in ("", "-wal")]
        return [file.read_bytes() if file.exists() else b"" for file in files]

    # -- PostgreSQL ---------------------------------------------------------------------------------------------------

    def postgres_socket(self) -> tuple[str, Callable[[int], str]]:
        """Where the server listens, and the URL of this episode's database through a proxy on a port."""
        assert self._postgres is not None and self.world.database_url is not None
        database = conninfo_to_dict(self.world.database_url)["dbname"]
        return self._postgres.socket, lambda port: f"postgresql://postgres@127.0.0.1:{port}/{database}"

    def restart_postgres(self, pause: float) -> None:
        """Stop the server at once, and start it again after a pause."""
        assert self._postgres is not None
        self._postgres.stop()
        time.sleep(pause)
        self._postgres.start()


_PROBE = {"thought": "probe of whether somebody is served", "nextThoughtNeeded": True}
