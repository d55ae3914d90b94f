"""One realistic story for screenshots and tests of all pages, made by real processes, hooks, agents and commands.

    story = Story(place)      a morning in five projects, which ends now
    story.holdfast            its daemon
    story.close()

`python -m tests.browser.story` makes it, prints a link and waits for Ctrl-C.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.agents.echo import offered
from tests.installation import Clocked, wait_until
from tests.process.agent import Agent
from tests.process.histories import History, Session

from holdfast.client import Client

MINUTE = 60_000
MORNING = 6 * 60 * MINUTE - 10 * MINUTE
PROJECTS = ("storefront", "billing-api", "homelab", "docs-site", "kiosk")

ASKS = (
    (-330, "storefront", "payments", "Which currencies can you charge?", "EUR, USD, GBP and CHF. JPY comes in March."),
    (
        -320,
        "payments",
        "storefront",
        "Do you send an id with each order?",
        "Yes: `order_id`, the same for every retry.",
    ),
    (
        -240,
        "storefront",
        "payments",
        "Is a refund safe to repeat?",
        "Not yet. A repeated refund is booked twice.\n\nSend `Idempotency-Key` with the order's id; "
        "then the second one answers what the first did.",
    ),
    (-180, None, "storefront", "What changed in the checkout today?", "Two commits: the key is sent, and a test."),
    (-60, None, "payments", "When did the last invoice run end?", "At 02:14, with 1,208 invoices and none left over."),
)
"""Who asked whom what in the morning, and what was answered."""

MIGRATION = "Apply migration 0042 to the staging database, and tell me how many invoices it numbered."
CURRENCIES = "Which currencies does the checkout offer in Switzerland?"
APPLIED = {
    "command": "psql staging -v ON_ERROR_STOP=1 -f migrations/0042_numbers.sql",
    "description": "Apply migration 0042 to the staging database",
}
TO_COME = {
    MIGRATION: f"permission Bash {json.dumps(APPLIED)}\n1,208 invoices of 31 tenants are numbered, without a gap.",
    CURRENCIES: "fail\nAPI Error: 529 overloaded_error: the model is overloaded, and 10 tries were in vain.",
}
"""What is asked at the end: one waits for a permission, one fails."""

THOUGHTS: tuple[dict[str, object], ...] = (
    {"thought": "Some orders are charged twice; all of them were slow. 14 of 1,208 since Monday."},
    {"thought": "charge() tries again after 5 s, but the bank had booked the first try and was only late to answer."},
    {
        "thought": "A longer timeout only hides it: the bank took 41 s once.",
        "branchFromThought": 2,
        "branchId": "timeout",
    },
    {"thought": "And customers would wait at the till. Ruled out.", "branchId": "timeout"},
    {
        "thought": "Ask the bank before each new try whether the order is booked.",
        "branchFromThought": 2,
        "branchId": "ask",
    },
    {"thought": "Its list is a minute behind, so this does not help.", "branchId": "ask"},
    {
        "thought": "The bank takes an Idempotency-Key. With the same key a second try answers what the first did.\n\n"
        "The key must be known before the first try, and the same after a restart: a random one, kept in memory, "
        "is not enough. The order's id is both."
    },
    {"thought": "A key per try would be wrong: it must be one per order.", "isRevision": True, "revisesThought": 7},
    {"thought": "Refunds have the same fault. There the key is the refund's id: an order may have several."},
    {"thought": "To test it, a bank that books at once and answers after the timeout."},
)
"""How the agent of the shop finds out why orders are charged twice."""
GAPS: tuple[dict[str, object], ...] = (
    {"thought": "Invoice numbers without a gap, per tenant: what may take a number and lose it?"},
    {"thought": "A database sequence is not rolled back, so a failed invoice would leave a gap."},
    {"thought": "One row per tenant, locked while the invoice is written. 31 tenants, so nobody waits long."},
    {"thought": "The old invoices are numbered by date, tenant by tenant, in one transaction each."},
)
LEAK: tuple[dict[str, object], ...] = (
    {"thought": "The screen freezes after about nine hours. Memory grows by 1.2 MB with every slide."},
    {"thought": "The decoder's cache? It is bounded, at 40 MB.", "branchFromThought": 1, "branchId": "cache"},
    {"thought": "The timer of a slide keeps its frames, and is never cancelled. That is 1.2 MB."},
)

CHECKED = {
    "storefront": """\
booked = ["r-2291", "r-2291"]  # by a bank that answers after the timeout
times = booked.count("r-2291")
if times != 1:
    raise SystemExit(f"FAILED a slow bank books a refund once: r-2291 was booked {times} times")
""",
    "docs-site": "print('41 links, 0 broken')\n",
}
"""What the checks of these projects run; the shop's fails."""

CHECKS = {".py": "ruff check", ".md": "npx markdownlint", ".sql": "sqlfluff lint", ".yaml": "yamllint"}
CLAUDE = ("claude-code", "2.1.325")
LOOKED_AT = tuple(
    f"src/{folder}/{name}.py"
    for folder in ("checkout", "checkout/payment_methods", "orders", "orders/fulfilment", "customers", "bank_gateway")
    for name in (
        *("__init__", "models", "service", "repository", "serializers", "permissions", "validation", "notifications"),
        *("retry_policy", "webhook_handlers", "reconciliation_report", "background_jobs"),
    )
)
"""What an agent reads to find out why orders are charged twice."""


class Story:
    """Five projects: at work, cut off, restarted in the middle of a task, killed and resumed, killed but gone on with.

    Two agents are still there, one at work and one idle; a program with a key of its own reconnected to one of them.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.holdfast = Clocked(place / "holdfast")
        self.holdfast.settings["HOME"] = str(place)
        self.histories = {name: History(self.holdfast, place / name, ahead=[0]) for name in PROJECTS}
        self._left = 0
        self._asked = list(ASKS)
        self._running: list[subprocess.Popen[bytes]] = []
        self._agents: list[Agent] = []

    def project(self, name: str) -> Path:
        """Where a project is: each in a folder of its own, so that its name is its own."""
        return self.place / "projects" / name

    def tell(self) -> None:
        """Act it out, from six hours ago until now."""
        self._at(-MORNING)
        self.holdfast.home.mkdir(mode=0o700)
        self.holdfast.settings |= offered()
        teams = {
            "storefront": {"project": str(self.project("storefront")), "agent": "echo", "description": "The shop"},
            "payments": {
                "project": str(self.project("billing-api")),
                "agent": "echo",
                "policy": "ask",
                "description": "Invoices and refunds",
            },
            "homelab": {"project": str(self.project("homelab")), "delivery": "hook"},
        }
        for name, history in self.histories.items():
            history.repository(self.project(name))
        (self.holdfast.home / "teams.json").write_text(json.dumps({"teams": teams}))
        (self.holdfast.home / "echo").mkdir()
        answers = {question: answer for _, _, _, question, answer in ASKS} | TO_COME
        spent = {question: {"answer": answer, **_spent(answer)} for question, answer in answers.items()}
        (self.holdfast.home / "echo" / "answers.json").write_text(json.dumps(spent))
        self.holdfast.serve()
        for name, script in CHECKED.items():
            self._governed(name, script)
        self._docs()
        self._kiosk()
        self._asks(-250)
        self._storefront()
        self._asks(-190)
        self._homelab()
        self._asks(-95)
        self._billing()
        self._asks(0)
        self._idle()
        self._pictures()
        self._keys()
        self._teams()
        self._at(0)
        assert self.holdfast.run("verify").returncode == 0
        assert self.holdfast.run("backup", str(self.place / "today.backup")).returncode == 0

    def close(self) -> None:
        """End everything."""
        for agent in self._agents:
            agent.close()
        for process in self._running:
            process.kill()
            process.wait()
        self.holdfast.close()

    # -- what happens -------------------------------------------------------------------------------------------------

    def _asks(self, until: int) -> None:
        """Let teams ask each other up to a time."""
        while self._asked and self._asked[0][0] < until:
            at, sender, team, question, _ = self._asked.pop(0)
            self._at(at)
            self.holdfast.run("teams", "ask", team, question, *(["--from", sender] if sender else []))

    def _docs(self) -> None:
        """A session is killed, and the same conversation is resumed."""
        self._at(-340)
        session = self._session("docs-site")
        session.context = 31_000
        session.ask("Bring the install page up to date, and check every link.")
        with Agent(self.holdfast, self.project("docs-site"), session=session.id, client=CLAUDE) as agent:
            agent.call("session_start", objective="Install page for 0.2: every step tried, every link checked")
        self._seen_reading(session, "README.md")
        session.todos(rewrite_the_install_page="in_progress", check_every_link="pending")
        self._work(session, 4, "guide/install.md")
        session.say("The page is rewritten. I check the links.", stop_reason=None)
        session.call("Bash", {"command": "npx linkinator guide --recurse"})
        self._at((self._left + 6 * MINUTE) // MINUTE)
        session.start("resume")
        session.ask("Your terminal was closed. Go on.")
        session.todos(rewrite_the_install_page="completed", check_every_link="in_progress")
        session.run("Bash", {"command": "npx linkinator guide --recurse"}, "41 links, 0 broken")
        self._work(session, 2, "guide/install.md")
        self.resumed = session.id
        session.todos(rewrite_the_install_page="completed", check_every_link="completed")
        self._commit("docs-site", session, "Install page for 0.2")
        with Agent(self.holdfast, self.project("docs-site"), session=session.id, client=CLAUDE) as agent:
            agent.call(
                "session_end",
                summary="The install page is rewritten for 0.2. Every step was tried on a fresh Debian 13; all 41 links"
                " lead somewhere.",
                key_decisions=["pipx comes first, pip second", "The page for Windows says WSL, and nothing else"],
                next_session_notes="The pictures of the first start are still those of 0.1.",
            )
        session.say("The install page is up to date; 41 links checked, none is broken.")
        session.end()

    def _kiosk(self) -> None:
        """A session is killed in the middle of its work, and the next one goes on with it."""
        self._at(-235)
        first = self._session("kiosk")
        first.context = 58_000
        first.ask(
            "The screen freezes after a night. Find the leak, and prove it with a test that runs an hour in a second."
        )
        first.todos(
            measure_the_memory="completed",
            find_who_keeps_the_frames="completed",
            free_them_when_a_slide_ends="in_progress",
            test_a_night_in_a_second="pending",
        )
        for name in ("docs/slides.md", "src/player/loop.py", "src/player/timers.py"):
            first.read(f"{first.cwd}/{name}")
        self._work(first, 4, "src/player/frames.py")
        self._think("kiosk", first, LEAK)
        first.fail("pytest tests/test_night.py", "Exit code 1\nMemoryError: 412 frames are kept")
        self._work(first, 5, "src/player/slides.py")
        first.change("tests/test_night.py", "one night\n")
        first.say("The frames of a slide are kept by its timer. I free them when the slide ends.", stop_reason=None)
        first.call("Edit", {"file_path": f"{first.cwd}/src/player/frames.py", "old_string": "x", "new_string": "y"})
        self._at((self._left + 7 * MINUTE) // MINUTE)
        second = self._session("kiosk")
        second.context = 14_000
        second.ask("Go on with that.")
        second.say("I read the timers first, then I free the frames.", stop_reason=None)
        second.read(f"{second.cwd}/src/player/timers.py")
        second.todos(free_them_when_a_slide_ends="completed", test_a_night_in_a_second="in_progress")
        self._work(second, 4, "src/player/frames.py")
        self._work(second, 3, "tests/test_night.py")
        second.todos(free_them_when_a_slide_ends="completed", test_a_night_in_a_second="completed")
        self._commit("kiosk", second, "Free the frames of a slide")
        second.say("A night runs in 0.8 s, and the memory stays at 31 MB. It is committed.")
        second.end()
        self.killed, self.went_on = first.id, second.id

    def _idle(self) -> None:
        """An agent that is open and waits."""
        self._at(-20)
        session = self._session("kiosk", pid=self._process())
        self._connected("kiosk", session).call("resume")
        session.ask("Is the freeze gone on the machine in the hall?")
        session.say("Yes: it ran through the night, at 31 MB.")

    def _pictures(self) -> None:
        """Another agent at work."""
        self._at(-24)
        session = self._session("docs-site", pid=self._process())
        session.ask("Now take the pictures of the first start again, for 0.2.")
        self._work(session, 4, "guide/first-start.md")
        self._at(-3)
        session.say("Three of five pictures are taken. The next is the one with an empty list.", stop_reason=None)
        session.call("Bash", {"command": "npx playwright screenshot first-start.html guide/empty.png"})

    def _storefront(self) -> None:
        self._at(-250)
        session = self._session("storefront", pid=self._process())
        self.at_work, session.context = session.id, 36_000
        session.ask("Some orders are charged twice. Find out why and mend it, with a test.")
        for name in LOOKED_AT:
            session.context += 900
            session.read(f"{session.cwd}/{name}")
        self._work(session, 8, "src/charge.py")
        session.fail("pytest tests/test_charge.py", "Exit code 1\nAssertionError: charged 2 times")
        agent = self._connected("storefront", session)
        agent.call("session_start", objective="Charge and refund each order once, however slow the bank is")
        self._seen_reading(session, "README.md")
        agent.call("advance_phase", to="WORKING")
        for thought in THOUGHTS[:-2]:
            agent.call("thought", nextThoughtNeeded=True, **thought)
        self._at(-150)
        session.ask("Keep the retries: the bank is often slow.")
        session.say("Then every retry must carry the same key.", stop_reason=None)
        session.hook("PreCompact", trigger="auto")
        session.compact()
        session.start("compact", pid=self._running[-1].pid)
        session.context = 17_000
        session.say("I hand the order's id to the bank with every try.", stop_reason=None)
        session.read(f"{session.cwd}/src/charge.py")
        self._work(session, 9, "src/bank.py")
        self._commit("storefront", session, "Send the order's id as a key")
        self._at(-35)
        session.ask("Good. Now the same for refunds.")
        for thought in THOUGHTS[-2:]:
            agent.call("thought", nextThoughtNeeded=True, **thought)
        session.todos(read_refund_code="completed", hand_on_the_order_id="in_progress", test_a_slow_bank="pending")
        self._work(session, 6, "src/refund.py")
        self._at(-6)
        agent.refused("session_end", summary="Charges and refunds carry a key")
        self._at(-2)
        session.say(
            "A slow bank still books the refund twice: the retry makes a new key. I mend that.", stop_reason=None
        )
        session.call("Bash", {"command": "python3 -I tests/test_refund.py"})

    def _homelab(self) -> None:
        self._at(-190)
        first = self._session("homelab")
        first.ask("Move the DNS to the new box.")
        with Agent(self.holdfast, self.project("homelab"), session=first.id, client=CLAUDE) as agent:
            task = "Move the DNS records to the new box"
            agent.call("save_task", current_task=task, last_completed_step="exported 214 records")
            self.holdfast.run("send", "homelab", "--id", "certs", "Also renew the certificates of mail and git.")
            for _ in range(5):
                agent.call("take_message")
                agent.call("finish_message", id="certs", outcome="later")
        self.holdfast.run("send", "homelab", "The new box has a second disk: put the nightly backups there.")
        self._work(first, 7, "dns/zones.yaml")
        self._at(-70)
        second = self._session("homelab", pid=self._process())
        second.ask("Are you there again?")
        second.say("Yes. I was restarted while I moved the DNS records: 214 are exported. Shall I go on?")
        second.hook("UserPromptSubmit", prompt="Are you there again?")

    def _billing(self) -> None:
        self._at(-95)
        session = self._session("billing-api")
        session.context = 40_000
        session.ask("Move the invoice numbers to a sequence per tenant, without a gap.")
        session.todos(write_the_migration="completed", backfill_old_invoices="in_progress", drop_the_counter="pending")
        self._work(session, 6, "migrations/0042_numbers.sql")
        self._at(-48)
        self._think("billing-api", session, GAPS)
        session.say("The migration is written. Next I backfill the old invoices, tenant by tenant.", stop_reason=None)
        session.call("Bash", {"command": "python -m billing.backfill --dry-run"})
        session.hook("PreCompact", trigger="auto")

    def _teams(self) -> None:
        self._at(-4)
        self._ask("storefront", CURRENCIES)
        self._at(-1)  # a request expires after five minutes
        self._ask("payments", MIGRATION)

        def asked() -> bool:
            return APPLIED["description"] in self.holdfast.run("teams", "status", "--json").stdout

        wait_until(asked, "a permission is asked for")

    def _keys(self) -> None:
        """Programs with keys of their own; one takes an agent's connection up again, as after a broken tunnel."""
        self._at(-12)
        for name, *options in (
            ("status-screen",),
            ("billing-bot", "--team", "payments"),
            ("tunnel", "--scope", "admin"),
        ):
            made = self.holdfast.run("key", "create", name, *options)
            assert made.returncode == 0, made.stderr
        tunnel = Client(self.holdfast.address(), made.stdout.strip())
        (one,) = [one for one in tunnel.active_sessions().sessions if one.agent_session == self.at_work]
        tunnel.reconnect(one.session_id, tunnel.get_token(one.session_id).reconnect_token)

    def _ask(self, team: str, question: str) -> None:
        self.holdfast.run("teams", "ask", team, question, "--timeout", "1")

    def _governed(self, name: str, script: str) -> None:
        """Let a project follow the protocol, with a command that checks it and that its owner trusts."""
        project, check = self.project(name), "tests/test_refund.py" if name == "storefront" else "tests/links.py"
        for path, text in (
            (".holdfast/protocol.toml", f'[gates.QUALITY_CHECKS]\ncommand = ["python3", "-I", "{check}"]\n'),
            (check, script),
        ):
            (project / path).parent.mkdir(exist_ok=True)
            (project / path).write_text(text)
        self.histories[name].commit("Check the work", at=project)
        trusted = self.holdfast.at_terminal("trust", str(project))
        assert trusted.returncode == 0, trusted.stdout

    # -- parts --------------------------------------------------------------------------------------------------------

    def _at(self, minutes: int) -> None:
        """Let time pass until so many minutes from now."""
        wanted = minutes * MINUTE if abs(minutes) < MORNING else minutes
        self.holdfast.later(wanted - self._left)
        self._left = wanted
        for history in self.histories.values():
            history.ahead[0] = wanted

    def _process(self) -> int:
        """A process that stands for an agent's."""
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        self._running.append(process)
        return process.pid

    def _session(self, name: str, pid: int | None = None) -> Session:
        made = Session(self.histories[name], self.project(name), "main")
        if pid is None:
            made.start()
        else:
            made.start(pid=pid)
        return made

    def _think(self, name: str, session: Session, thoughts: tuple[dict[str, object], ...]) -> None:
        """The agent records its thoughts."""
        with Agent(self.holdfast, self.project(name), session=session.id, client=CLAUDE) as agent:
            for thought in thoughts:
                agent.call("thought", nextThoughtNeeded=True, **thought)

    def _seen_reading(self, session: Session, name: str) -> None:
        """The agent reads a file, and its hook tells."""
        session.read(f"{session.cwd}/{name}")
        path = f"{session.cwd}/{name}"
        shown = {"filePath": path, "content": "…", "numLines": 1, "startLine": 1, "totalLines": 1}
        session.hook(
            "PostToolUse",
            tool_name="Read",
            tool_input={"file_path": path},
            tool_response={"type": "text", "file": shown},
        )

    def _connected(self, name: str, session: Session) -> Agent:
        """The agent's own connection, which stays."""
        agent = Agent(self.holdfast, self.project(name), session=session.id, client=CLAUDE)
        self._agents.append(agent)
        return agent

    def _commit(self, name: str, session: Session, message: str) -> None:
        """The agent commits everything, really."""
        project, history = self.project(name), self.histories[name]
        history.commit(message, at=project)
        head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=project, capture_output=True, check=True)
        said = f"[main {head.stdout.decode().strip()}] {message}"
        session.run("Bash", {"command": f'git add -A && git commit -m "{message}"'}, said)

    def _work(self, session: Session, steps: int, file: str) -> None:
        """Work at a file for a while, a step every few minutes."""
        for step in range(steps):
            self._at((self._left + (3 + step % 3) * MINUTE) // MINUTE)
            session.context += 2_300 if session.context else 0
            if step == 0:
                session.read(f"{session.cwd}/README.md")
            session.change(file, f"step {step}\n")
            if step % 3 == 1:
                session.run("Bash", {"command": f"{CHECKS[Path(file).suffix]} {file}"}, "no problem found")


def _spent(answer: str) -> dict[str, float]:
    """What an answer costs, about as much as a model's would."""
    read, written = 9_000 + 97 * len(answer), 11 * len(answer)
    return {"input_tokens": read, "output_tokens": written, "cost_usd": (3 * read + 15 * written) / 1_000_000}


@contextmanager
def told() -> Iterator[Story]:
    """A story in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="home-", dir="/tmp") as folder:
        story = Story(Path(folder))
        try:
            story.tell()
            yield story
        finally:
            story.close()


if __name__ == "__main__":
    with told() as story:
        sys.stdout.write(story.holdfast.run("open", "--print").stdout)
        sys.stdin.read()
