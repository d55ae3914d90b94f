"""The clients: real relays and HTTP calls, each carrying out its plan and writing down what it was told."""

from __future__ import annotations

import contextlib
import random
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.chaos.history import History, Op, Outcome
from tests.chaos.plan import Intent, Role
from tests.chaos.world import RestRefused, World
from tests.installation import HOLDFAST
from tests.process.agent import Agent
from tests.repository import Repository

ANSWER_SECONDS = 30.0
"""How long a call may take while its relay lives; beyond that it counts as never answered."""
GLANCE_SECONDS = 0.05
"""How soon a client that was killed is gone."""
IN_DOUBT = ("may or may not", "look whether it took effect", "may have taken effect")
"""Words with which an error leaves open whether the call had an effect."""
PARENT = ("sh", "-c", '"$0" "$@"; exit $?', str(HOLDFAST), "mcp")
"""A relay that has a parent of its own, as an agent is: killing a client kills that parent."""


class Shared:
    """What clients tell each other, as people would."""

    def __init__(self) -> None:
        self.sessions: list[str] = []
        self.messages: list[str] = []
        self.client_settings: dict[str, str] = {}
        """What relays have in their environment besides the world's own settings."""
        self.over = threading.Event()
        """No new operation is begun."""
        self.power = threading.Event()
        """Clients can run at all; a power cut ends them too."""
        self.power.set()


class Client:
    """One client with its relay; a new one is started when that was killed."""

    def __init__(self, world: World, history: History, shared: Shared, role: Role, intents: list[Intent]) -> None:
        self.world, self.history, self.shared, self.role = world, history, shared, role
        self._intents = intents
        self._serial = 0
        self.agent: Agent | None = None
        self._killed: Agent | None = None
        self.failure: BaseException | None = None
        self._runs = Runs(self) if "run" in role.weights else None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=role.name, daemon=True)
        self._last_thought = 0
        self._cursors: dict[str, str] = {}

    @property
    def name(self) -> str:
        """Its name, which is also the agent's session."""
        return self.role.name

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait for its end; whether it came."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def kill(self, *, whole_client: bool) -> None:
        """Kill the relay, or the client that it belongs to, with SIGKILL."""
        with self._lock:
            agent = self.agent
        if agent is None:
            return
        if whole_client:
            agent.process.kill()  # the parent; its pipes are closed by the thread that waits at them
            self._killed = agent
            return
        found = subprocess.run(["pgrep", "-P", str(agent.process.pid)], capture_output=True, text=True)
        for pid in found.stdout.split():
            subprocess.run(["kill", "-9", pid], capture_output=True)

    def hang_up(self) -> None:
        """Close the relay in good order."""
        agent, self.agent = self.agent, None
        if agent is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired, ValueError):
                agent.close()
            if agent.process.poll() is None:
                agent.process.kill()
                agent.process.wait()

    # -- working ------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            for intent in self._intents:
                if self.shared.over.is_set():
                    break
                self._do(intent)
        except BaseException as error:  # noqa: BLE001 - the episode reports it
            self.failure = error
        finally:
            self.hang_up()

    def mark(self) -> str:
        """What the next effect is recognised by."""
        self._serial += 1
        return f"{self.name}#{self._serial:04d}."

    def _do(self, intent: Intent) -> None:
        given = intent.arguments
        match intent.kind:
            case "think" | "branch" | "join":
                self._think(intent)
            case "new_session":
                self._new_session()
            case "recall":
                self.call("recall", "init", self.mark(), {"operation": "load_context"})
            case "send" | "send_again":
                self._send(given, again=intent.kind == "send_again")
            case "serve":
                self._serve(given)
            case "intrude":
                self._intrude(given)
            case "task":
                self._task(given["target"])
            case "pull":
                self._pull(given["target"])
            case "ask" | "ask_later":
                self._ask(intent)
            case "notify":
                mark = self.mark()
                self.call("notify", "teams_notify", mark, {"toTeam": given["team"], "message": f"{mark} is due"})
            case "run" if self._runs is not None:
                self._runs.step()
            case "rest_send":
                self._rest_send(given)
            case "rest_read":
                self._rest_read()

    def _think(self, intent: Intent) -> None:
        mark = self.mark()
        arguments: dict[str, Any] = {
            "thought": f"{mark} " + "x" * int(intent.arguments["size"]),
            "nextThoughtNeeded": True,
        }
        if intent.kind == "branch" and self._last_thought:
            arguments |= {"branchId": f"b{self._last_thought % 3}", "branchFromThought": 1}
        if intent.kind == "join" and self.shared.sessions:
            at = int(intent.arguments["pick"] * len(self.shared.sessions))
            arguments["sessionId"] = self.shared.sessions[min(at, len(self.shared.sessions) - 1)]
        op = self.call("think", "thought", mark, arguments)
        if op.ok and "thoughtNumber" in op.reply:
            self._last_thought = int(op.reply["thoughtNumber"])

    def _new_session(self) -> None:
        mark = self.mark()
        op = self.call("new_session", "init", mark, {"operation": "start_new", "title": f"{mark} begins"})
        if op.ok:
            self.shared.sessions.append(op.reply["session"]["id"])

    def _send(self, given: dict[str, Any], *, again: bool) -> None:
        mark = self.mark()
        arguments = {"target": given["target"], "message": f"{mark} please", "priority": given["priority"]}
        if given["named"]:
            arguments["id"] = mark
        op = self.call("send", "send_message", mark, arguments)
        if op.ok and op.reply.get("queued"):
            self.shared.messages.append(op.reply["id"])
        if again and not op.ok and not self.shared.over.is_set():  # as the documentation has it: the same id once more
            self.call("send", "send_message", mark, arguments)

    def _serve(self, given: dict[str, Any]) -> None:
        target = given["target"]
        take = {"target": target, "wait_seconds": given["wait"]}
        taken = self.call("take", "take_message", self.mark(), take)
        if not taken.ok or "id" not in taken.reply:
            return
        if given["retake"]:
            taken = self.call("take", "take_message", self.mark(), {"target": target})
            if not taken.ok or "id" not in taken.reply:
                return
        if given["task"]:
            self._task(target, taken.reply["id"])
        mark = self.mark()
        finish = {"id": taken.reply["id"], "outcome": given["outcome"], "reply": f"{mark} answered"}
        self.call("finish", "finish_message", mark, finish)

    def _intrude(self, given: dict[str, Any]) -> None:
        known = list(self.shared.messages)
        if known:
            mark = self.mark()
            chosen = known[min(int(given["pick"] * len(known)), len(known) - 1)]
            finish = {"id": chosen, "outcome": given["outcome"], "reply": f"{mark} intruded"}
            self.call("finish", "finish_message", mark, finish)

    def _task(self, target: str, message: str | None = None) -> None:
        mark = self.mark()
        arguments = {"target": target, "current_task": f"{mark} at work", "last_completed_step": self._serial}
        self.call("task", "save_task", mark, arguments | ({"current_task_id": message} if message else {}))

    def _pull(self, target: str) -> None:
        arguments = {"target": target}
        if target in self._cursors:
            arguments["since"] = self._cursors[target]
        op = self.call("pull", "pull_updates", self.mark(), arguments)
        if op.ok:
            self._cursors[target] = op.reply["cursor"]

    def _ask(self, intent: Intent) -> None:
        given, mark = intent.arguments, self.mark()
        text = f"{mark} what?" + (f"\nsleep {given['sleep']}" if "sleep" in given else "")
        thread = {} if given["thread"] == "main" else {"threadId": given["thread"]}
        if intent.kind == "ask":
            arguments = {"team": given["team"], "question": text, "timeout": 20_000, **thread}
            self.call("ask", "teams_ask", mark, arguments)
            return
        arguments = {"toTeam": given["team"], "message": text, "waitForResponse": False, **thread}
        op = self.call("ask", "teams_send_message", mark, arguments)
        if op.ok:
            wait = {"operation": "wait", "askId": op.reply["askId"], "timeout": 20_000}
            self.call("await", "teams_session", self.mark(), wait)

    # -- REST ---------------------------------------------------------------------------------------------------------

    def _rest_send(self, given: dict[str, Any]) -> None:
        mark = self.mark()
        body = {"target": given["target"], "message": f"{mark} please", "id": mark, "priority": given["priority"]}
        for _ in range(50):
            op = self._rest("send", "POST", "/api/bridge/messages", mark, body)
            if op.outcome is not Outcome.UNKNOWN or self.shared.over.is_set():
                break
            time.sleep(0.2)  # as somebody at a keyboard; what counts is that the id is the same
        if op.ok and op.reply.get("queued"):
            self.shared.messages.append(mark)

    def _rest_read(self) -> None:
        self._rest("rest_read", "GET", "/api/bridge/targets", self.mark())

    def _rest(self, kind: str, method: str, path: str, mark: str, body: dict[str, Any] | None = None) -> Op:
        op = self.history.invoke(self.name, kind, mark, body or {})
        try:
            reply = self.world.rest(method, path, body)
        except RestRefused as error:
            sure = error.status < 500
            return self.history.complete(op, Outcome.REFUSED if sure else Outcome.UNKNOWN, error=str(error))
        except OSError as error:
            return self.history.complete(op, Outcome.UNKNOWN, error=str(error))
        return self.history.complete(op, Outcome.OK, reply)

    # -- calling ------------------------------------------------------------------------------------------------------

    def call(self, kind: str, tool: str, mark: str, arguments: dict[str, Any]) -> Op:
        """Call a tool and write down what came of it."""
        op = self.history.invoke(self.name, kind, mark, arguments)
        try:
            agent = self._connected()
            answer = self._answer(agent, agent.ask("tools/call", {"name": tool, "arguments": arguments}))
        except TimeoutError:
            self.hang_up()
            return self.history.complete(op, Outcome.UNANSWERED, error=f"no answer within {ANSWER_SECONDS:g} s")
        except (EOFError, OSError, ValueError, AssertionError) as error:  # the relay was killed, or never shook hands
            self.hang_up()
            return self.history.complete(op, Outcome.UNKNOWN, error=f"the relay is gone: {error}")
        return self.history.complete(op, *judge(answer))

    def _answer(self, agent: Agent, request: int) -> dict[str, Any]:
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return agent.answer(request, GLANCE_SECONDS)
            except TimeoutError:
                if self._killed is agent:
                    raise EOFError("this client was killed") from None
                if time.monotonic() > deadline:
                    raise

    def _connected(self) -> Agent:
        self.shared.power.wait(ANSWER_SECONDS)
        with self._lock:
            if self.agent is None:
                self.agent = Agent(
                    self.world,
                    self.world.project(self.role.project),
                    era=self.role.era,
                    session=f"chaos-{self.name}",
                    env=self.shared.client_settings,
                    command=PARENT,
                )
            return self.agent


def judge(answer: dict[str, Any]) -> tuple[Outcome, dict[str, Any], str]:
    """What an answer tells a client about its call."""
    if "error" in answer:
        return Outcome.UNKNOWN, {}, str(answer["error"])
    result = answer["result"]
    if not result.get("isError"):
        return Outcome.OK, dict(result["structuredContent"]), ""
    text = str(result["content"][0]["text"])
    in_doubt = any(words in text for words in IN_DOUBT)
    return Outcome.UNKNOWN if in_doubt else Outcome.REFUSED, {}, text


class Runs:
    """A client that takes one working session after the other through the phases of the simple protocol."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._repository: Repository | None = None
        self._steps: list[Callable[[], Op]] = []
        self._run: str | None = None
        self._chance = random.Random(client.name)

    def step(self) -> None:
        """Do the next step; after one in doubt or refused, find out where the run stands and end it."""
        if not self._steps:
            self._steps = [self._start]
        op = self._steps.pop(0)()
        if op.kind == "run_start" and op.ok:
            self._run = op.reply["session_id"]
            self._steps = [self._evidence, self._gate, self._advance, self._advance, self._advance, self._end]
        elif not op.ok:
            self._resume()

    def _resume(self) -> None:
        op = self._client.call("run_look", "get_blocked_reason", self._client.mark(), {})
        if op.ok:
            self._run = op.reply["session_id"]
            self._steps = [self._evidence, self._end]
        else:
            self._run, self._steps = None, []

    def _start(self) -> Op:
        mark = self._client.mark()
        return self._client.call("run_start", "session_start", mark, {"objective": f"{mark} to be done"})

    def _evidence(self) -> Op:
        evidence = {"phase": "CONTEXT_RETRIEVAL", "evidence_type": "content_hash"}
        evidence["evidence"] = f"README.md {self._project().sha256('README.md')}"
        return self._client.call("run_evidence", "record_evidence", self._client.mark(), evidence)

    def _gate(self) -> Op:
        return self._client.call("run_gate", "validate_gate", self._client.mark(), {"phase": "CONTEXT_RETRIEVAL"})

    def _advance(self) -> Op:
        return self._client.call("advance", "advance_phase", self._client.mark(), {})

    def _end(self) -> Op:
        mark = self._client.mark()
        self._project().write("work.txt", mark)
        self._project().commit(mark)
        return self._client.call("run_end", "session_end", mark, {"summary": f"{mark} done"})

    def _project(self) -> Repository:
        if self._repository is None:
            self._repository = Repository.__new__(Repository)
            self._repository.path = self._client.world.project(self._client.role.project)
        return self._repository
