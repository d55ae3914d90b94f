"""The bridge service: no message is lost or silently done twice, and followers learn of every restart."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.bridge import idle
from holdfast.bridge.errors import UnknownMessage, UnknownTarget
from holdfast.bridge.model import (
    FROM_CHAT,
    LEASE_MS,
    MAX_ID,
    MAX_TEXT,
    TTL_MS,
    IdleDecision,
    Message,
    OpenTask,
    Outcome,
    Priority,
    ProjectTask,
    Refusal,
    Restart,
    Status,
    Task,
    TaskReport,
    Update,
    UpdateKind,
    check_text,
)
from holdfast.bridge.queries import incarnations, tasks, updates
from holdfast.bridge.queries import queue as queries
from holdfast.errors import BadInput, Busy
from holdfast.identity.caller import Caller
from holdfast.identity.project import Root, path_of
from holdfast.identity.senders import OWNER, Kind, NotYours, Sender, sender_of, teams_around
from holdfast.lazy_dataclass import dataclass
from holdfast.reasoning.queries import projects
from holdfast.store import Store, Tx
from holdfast.store.calls import CallKey, first_time, had_no_effect, locked_answer, store_answer
from holdfast.store.wakeups import Wakeups
from holdfast.teams.team import Team, name_problem
from holdfast.text.quoting import quoted
from holdfast.times import milliseconds

if TYPE_CHECKING:
    from holdfast.bridge.queries.incarnations import Incarnation
    from holdfast.bridge.queries.questions import IdleQuestion, RestartQuestion
    from holdfast.bridge.results import Finished, Followed, Pulled, Sent, Taken, TargetStatus, TaskSaved

MOST_UPDATES = 100
LONGEST_WAIT_S = 300
LONGEST_TTL_MS = 365 * 24 * 3_600_000
POLL_S = 2.0
MESSAGE_ID_PATTERN = rf"^[A-Za-z0-9!#$%&()*+,./:;=?@^_~-]{{1,{MAX_ID}}}$"
MESSAGE_ID_RULE = f"must be 1 to {MAX_ID} ASCII letters, digits and signs, without spaces, quotes and brackets"
_MESSAGE_ID = re.compile(MESSAGE_ID_PATTERN)
STRANGER = "stranger"
"""The owner of a task saved by a caller that cannot be recognised."""

Targets = Callable[[], Mapping[str, Team]]
"""The teams as they are configured now; each is a target."""


@dataclass(frozen=True, slots=True)
class Inbox:
    """What a target's agent finds when it comes back."""

    task: Task | None
    following: Message | None
    """The next message."""
    waiting: list[tuple[str, int]]
    """The senders of messages that wait, most first, and how many of each."""


class Bridge:
    """Queues messages, hands them out and detects restarts; the entry point for other packages."""

    def __init__(self, store: Store, targets: Targets) -> None:
        self._store = store
        self._targets = targets

    # -- sending ------------------------------------------------------------------------------------------------------

    async def send(
        self,
        target: str,
        text: str,
        *,
        message_id: str | None = None,
        priority: Priority = Priority.NORMAL,
        sender: str = "somebody",
        source: str = "mcp",
        ttl_ms: int = TTL_MS,
        reply_to: str | None = None,
        key: CallKey | None = None,
    ) -> Sent:
        from holdfast.bridge.results import Sent

        check_text(text)
        for name, value in (("id", message_id), ("reply_to", reply_to)):
            if value is not None and not is_message_id(value):
                raise BadInput(name, MESSAGE_ID_RULE)
        if not 1_000 <= ttl_ms <= LONGEST_TTL_MS:
            raise BadInput("ttl_seconds", "must be 1 to 31,536,000")

        def write(tx: Tx) -> Sent:
            if target not in self._targets():
                return Sent(target, reason=f"unknown target: {_shown(target)}")
            made = queries.enqueue(
                tx,
                target,
                text,
                message_id=message_id,
                priority=priority,
                sender=sender,
                source=source,
                ttl_ms=ttl_ms,
                reply_to=reply_to,
            )
            if isinstance(made, Refusal):
                return Sent(target, reason=made.value)
            if self._targets()[target].chat is not None and source != FROM_CHAT:
                updates.add(tx, target, UpdateKind.MESSAGE, f"{sender}: {text}", made, chat_only=True)
            return Sent(target, made)

        return await self._store.write(first_time(key, write))

    async def pull(
        self,
        target: str,
        since: str | None,
        limit: int = MOST_UPDATES,
        *,
        sender: Sender = OWNER,
        questions: bool = False,
    ) -> Pulled:
        """Return updates after a cursor or since a time; to another team only those of its own messages."""
        from holdfast.bridge.results import Pulled

        self._known(target)
        after, at = _since(since)
        sent_by = None if sender.may_act_for(target) else sender.label
        found = await self._store.read(
            lambda tx: updates.told(
                tx, target, after=after, since=at, limit=limit, sent_by=sent_by, questions=questions
            )
        )
        return Pulled(tuple(found), found[-1].seq if found else after)

    async def status(self, sender: Sender = OWNER) -> list[TargetStatus]:
        """Every target: waiting messages, current work, its agent and when it was last seen.

        Another team's work is not shown, and a key limited to teams sees only these.
        """
        names = [name for name in self._targets() if sender.may_see(name)]
        return await self._store.read(lambda tx: [_status(tx, name, whole=sender.may_act_for(name)) for name in names])

    async def target_tasks(self) -> list[Task]:
        """Return the saved task of each target that has one."""
        names = list(self._targets())
        found = await self._store.read(lambda tx: [tasks.of_target(tx, name) for name in names])
        return [task for task in found if task is not None]

    async def incarnations(self, target: str, limit: int) -> list[Incarnation]:
        """Return the sessions that were at work for a target, the latest first."""
        return await self._store.read(lambda tx: incarnations.latest(tx, target, limit))

    async def decide_idle(self, target: str, decision: IdleDecision) -> str:
        """Store whether a copy may answer for an agent that is idle at its terminal; return the outcome."""
        self._known(target)
        return await self._store.write(lambda tx: idle.decide(tx, target, "", decision))

    async def questions(self) -> tuple[list[RestartQuestion], list[IdleQuestion]]:
        """Return the owner's open questions."""
        from holdfast.bridge.queries import questions

        return await self._store.read(lambda tx: (questions.restarts(tx), questions.idle(tx)))

    async def decide_restart(self, target: str, session_id: str, decision: str) -> str:
        """Store and pass on the owner's decision about the task of a session that was restarted."""
        from holdfast.bridge import restart_decision

        self._known(target)

        def write(tx: Tx) -> Refusal | str:
            def enqueue(text: str) -> str | Refusal:
                return queries.enqueue(
                    tx, target, text, sender=OWNER.label, source="dashboard", priority=Priority.URGENT
                )

            return restart_decision.decide(tx, target, decision, enqueue, lambda session: session == session_id)

        decided = await self._store.write(write)
        if isinstance(decided, Refusal):
            raise Busy(f"Not queued: {decided.value}.", recovery="Try again when some messages are done.")
        return decided

    async def inbox(self, target: str) -> Inbox:
        """Return the task and waiting messages for an agent that comes back; takes nothing."""

        def read(tx: Tx) -> Inbox:
            following = next(iter(queries.pending(tx, target, 1)), None)
            return Inbox(tasks.of_target(tx, target), following, queries.waiting_by_sender(tx, target))

        return await self._store.read(read)

    # -- taking work --------------------------------------------------------------------------------------------------

    async def take(self, caller: Caller, target: str | None, wait_s: int = 0, key: CallKey | None = None) -> Taken:
        """Lease the next message for the caller; waits for one as long as asked."""
        from holdfast.bridge.results import Taken

        if not 0 <= wait_s <= LONGEST_WAIT_S:
            raise BadInput("wait_seconds", f"must be 0 to {LONGEST_WAIT_S}")
        sender = self.sender(caller)
        by, here = taker(caller), target or sender.home
        deadline = time.monotonic() + wait_s

        def write(tx: Tx) -> Taken:
            known = locked_answer(tx, key)
            name = self._own(sender, known["target"] if known else here, "The queue")
            queue = queries.front(tx, name)
            if known is not None:
                still = [message for message in queue.out if message.row_id == known["row"] and message.lease_by == by]
                if still:
                    return Taken(name, still[0], queue.waiting)
            message, waiting = self._take(tx, queue, by)
            if message is not None:
                store_answer(tx, key, {"target": name, "row": message.row_id})
            return Taken(name, message, waiting)

        taken = await self._store.write(write)
        if taken.message is None and wait_s:
            with Wakeups(self._store) as news:
                while True:
                    taken = await self._store.write(write)
                    if taken.message is not None or (left := deadline - time.monotonic()) <= 0:
                        break
                    await news.wait(min(left, POLL_S))
                    news.clear()
        if taken.message is None:
            had_no_effect(key)
        return taken

    @staticmethod
    def _take(tx: Tx, queue: queries.Front, by: str) -> tuple[Message | None, int]:
        """Return the message for the caller to work on, and how many wait after it."""
        # A taker that asks again gets its message again, and while a message is leased only a STOP is handed out. The
        # answer with a STOP may have been lost, so it comes again, before the next STOP and the work that it stops.
        mine = queries.most_urgent(message for message in queue.out if message.lease_by == by)
        if mine is None or mine.priority < Priority.STOP:
            taken = queries.hand_out(tx, queue, by, "call", LEASE_MS)
            if taken is not None:
                return taken, queue.waiting - 1
        return mine, queue.waiting

    async def finish(
        self, caller: Caller, message_id: str, outcome: Outcome, reply: str | None, key: CallKey | None = None
    ) -> Finished:
        """End a message that the caller took; repeating it the same way changes nothing."""
        if reply is not None and (len(reply) > MAX_TEXT or "\0" in reply):
            raise BadInput("reply", f"must be at most {MAX_TEXT} characters without NUL bytes")
        by, sender = taker(caller), self.sender(caller)

        def write(tx: Tx) -> Finished:
            return self._finish(tx, sender, by, message_id, outcome, reply)

        return await self._store.write(first_time(key, write))

    @staticmethod
    def _finish(tx: Tx, sender: Sender, by: str, message_id: str, outcome: Outcome, reply: str | None) -> Finished:
        from holdfast.bridge.results import Finished

        found = queries.find(tx, message_id, by)
        if found is not None and tx.engine == "postgres":
            # Another transaction may have changed it before this one got the lock.
            tx.lock(f"bridge:{found[0].target}")
            found = queries.find(tx, message_id, by)
        if found is None:
            raise UnknownMessage(
                f"There is no message {quoted(message_id, 64)}.", recovery="queue_status shows the targets."
            )
        message, waiting = found
        sender.require(message.target, "The queue")
        if Status(message.status).over and message.lease_by == by and message.outcome == outcome.value:
            return Finished(message.id, Status(message.status), waiting, repeated=True)
        if message.status != Status.LEASED or message.lease_by != by:
            whose = "was finished" if Status(message.status).over else "is no longer yours"
            raise NotYours(
                f"Message {message.id} {whose} (it is {message.status}).", recovery="take_message gives you the next."
            )
        status = queries.finish(tx, message, outcome, reply)
        return Finished(message.id, status, waiting + (status is Status.PENDING))

    async def save_task(
        self, caller: Caller, target: str | None, report: TaskReport, key: CallKey | None = None
    ) -> TaskSaved:
        """Save the caller's task for whoever continues it, or that it is finished."""
        report.check()
        sender = self.sender(caller)
        if target is not None and sender.kind is Kind.AGENT and caller.root is not None:
            raise NotYours(
                f"The task of {quoted(target, 64)} is not yours: you are {sender.label}.",
                recovery="Leave target out: your task is saved for your own project.",
            )

        def write(tx: Tx) -> TaskSaved:
            if (named := target or sender.home) is not None:
                return _save_for_target(tx, self._own(sender, named, "The task"), caller, report)
            if caller.key_teams is not None:
                raise BadInput("target", f"is required: your key is for {', '.join(sorted(caller.key_teams))}")
            if caller.root is None:
                raise BadInput(
                    "target",
                    "is required: your project is not known",
                    recovery='Name it with init {operation: "bind_root", mcpRootUri: "file:///…"}.',
                )
            return _save_for_project(tx, caller.root, caller, report)

        return await self._store.write(first_time(key, write))

    async def open_tasks(self, root: Root, limit: int) -> list[OpenTask]:
        """Tasks that agents of a project saved and did not finish."""
        return await self._store.read(lambda tx: tasks.open_in_project(tx, root, limit))

    # -- agents at work -----------------------------------------------------------------------------------------------

    async def seen(
        self, target: str, session_id: str, source: str, *, known_is_alive: bool = False
    ) -> tuple[Restart | None, Task | None]:
        """Record that an agent of the target is at work; return the restart, if this is one, and the task to resume."""

        def write(tx: Tx) -> tuple[Restart | None, Task | None]:
            found = incarnations.seen(tx, target, session_id, source, known_is_alive=known_is_alive)
            return found, tasks.of_target(tx, target) if found else None

        return await self._store.write(write)

    async def sweep(self) -> None:
        """End messages that nobody took in time."""
        while await self._store.write(queries.expire_old):
            pass

    async def forget_old(self, keep_ms: int) -> int:
        """Delete messages done and updates written that long ago, a part at a time; returns how many rows.

        Waiting and undone messages stay, and the newest of both, so that numbers continue and cursors stay valid.
        """
        from holdfast.bridge.queries import retention

        dropped = 0
        while rows := await self._store.read(lambda tx: retention.done(tx, tx.now() - keep_ms)):
            dropped += await self._store.write(lambda tx: retention.drop_messages(tx, rows))
        for target, last in await self._store.read(lambda tx: retention.told(tx, tx.now() - keep_ms)):
            while some := await self._store.write(partial(retention.drop_updates, target=target, last=last)):
                dropped += some
        return dropped

    def sender(self, caller: Caller) -> Sender:
        return sender_of(caller, self._targets())

    def around(self, root: Root) -> str | None:
        """Return the target whose project contains a root, links included: its agents share that queue and task."""
        path = path_of(root.uri)
        return next(iter(teams_around(self._targets(), path)), None) if path is not None else None

    def applies_to(self, root: Root | None) -> bool:
        return root is not None and self.around(root) is not None

    # -- for people at a terminal -------------------------------------------------------------------------------------

    async def follow(self, followed: Sequence[Followed], limit: int = MOST_UPDATES) -> list[Update]:
        """Return the next updates of several targets, each with its question, in the order of time."""
        for one in followed:
            self._known(one.target)
        places = [(one.target, *_since(one.since)) for one in followed]

        def read(tx: Tx) -> list[list[Update]]:
            return [
                updates.told(tx, target, after=after, since=at, limit=limit, questions=True)
                for target, after, at in places
            ]

        # Merged and not sorted: a clock that was set back must not put a target's own updates out of order.
        found = merge(*await self._store.read(read), key=lambda update: update.created_at)
        return list(islice(found, limit))

    def _own(self, sender: Sender, target: str | None, what: str) -> str:
        """Return the target whose queue or task a caller asks for, if it may."""
        if target is None:
            raise BadInput("target", "is required: you are in no target's project", recovery="queue_status lists them.")
        self._known(target)
        sender.require(target, what)
        return target

    def _known(self, target: str) -> None:
        if target not in self._targets():
            raise UnknownTarget(
                f"unknown target: {_shown(target)}.", recovery="queue_status and `holdfast queue` list them."
            )


def taker(caller: Caller) -> str:
    """Name the holder of a lease: the agent's session if it has one, so that hooks and calls share it."""
    return f"session:{caller.agent_session}" if caller.agent_session else caller.identity or "somebody"


def _status(tx: Tx, name: str, *, whole: bool) -> TargetStatus:
    """Read a target's status; with `whole` also what its agent works on."""
    from holdfast.bridge.results import TargetStatus

    working, waiting = queries.leased(tx, name), queries.waiting(tx, name)
    last_seen = incarnations.last_seen(tx, name)
    if not whole:
        return TargetStatus(name, waiting, len(working), last_seen)
    return TargetStatus(
        name,
        waiting,
        len(working),
        last_seen,
        task=tasks.of_target(tx, name),
        working_on=working[0].text if working else None,
        session_id=incarnations.incarnation(tx, name),
        dead_letters=queries.count(tx, name, Status.DEAD),
        held=queries.count(tx, name, Status.HELD),
    )


def _save_for_target(tx: Tx, target: str, caller: Caller, report: TaskReport) -> TaskSaved:
    from holdfast.bridge.results import TaskSaved

    if report.done:
        return TaskSaved(tasks.finish_of_target(tx, target), target=target)
    task = Task(**asdict(report.work(caller.agent_session)) | {"target": target})
    return TaskSaved(tasks.save_for_target(tx, task), target=target)


def _save_for_project(tx: Tx, root: Root, caller: Caller, report: TaskReport) -> TaskSaved:
    """Save the caller's own task in a project without a target, unless recording is paused there."""
    from holdfast.bridge.results import TaskSaved

    if projects.is_paused(tx, root, None):
        return TaskSaved()
    owner, project = caller.identity or STRANGER, str(path_of(root.uri) or root.uri)
    if report.done:
        ended = tasks.finish_in_project(tx, root, owner, report.current_task, report.current_task_id)
        return TaskSaved(ended, project=project)
    task = ProjectTask(**asdict(report.work(caller.agent_session)) | {"root": root.uri, "owner": owner})
    return TaskSaved(tasks.save_for_project(tx, task, root.key), project=project)


def is_message_id(text: str) -> bool:
    """Whether a text can be a message id: agents read it, so it must not look like anything else."""
    return _MESSAGE_ID.fullmatch(text) is not None


def _shown(target: str) -> str:
    """Quote an unknown target's name for its caller."""
    return target if name_problem(target) is None else quoted(target, 64)


def _since(since: str | None) -> tuple[int, int | None]:
    if since is None:
        return 0, None
    if since.isascii() and since.isdigit() and len(since) <= 18:
        return int(since), None
    try:
        return 0, milliseconds(since)
    except ValueError as error:
        raise BadInput("since", f"must be a cursor from pull_updates, or {error}") from error
