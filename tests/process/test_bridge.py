"""The bridge from outside: the seed's scenarios in both eras on both engines, and many messages under fire."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.installation import PATIENCE, Installation, wait_until
from tests.postgres import fresh_database
from tests.process.agent import Agent
from tests.process.clients import WAYS, Way
from tests.process.killing import while_killing

SEED_TARGETS = ("homelab", "felt", "sentry")


def write_targets(holdfast: Installation, place: Path, names: list[str]) -> dict[str, Path]:
    """Configure targets with a project each."""
    projects = {name: place / name for name in names}
    for project in projects.values():
        project.mkdir(parents=True, exist_ok=True)
    holdfast.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    teams = {name: {"project": str(project), "delivery": "hook"} for name, project in projects.items()}
    (holdfast.home / "teams.json").write_text(json.dumps({"teams": teams}))
    return projects


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def bridge(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A running Holdfast on each engine, with the seed's targets once for each way to reach it."""
    place = tmp_path_factory.mktemp("bridge")
    installation = Installation(place / "holdfast")
    if request.param == "postgres":
        installation.settings["HOLDFAST_DATABASE_URL"] = fresh_database(request.getfixturevalue("postgres"), keep=True)
    try:
        installation.serve()
        write_targets(
            installation, place / "targets", [*(f"{name}-{way}" for way in WAYS for name in SEED_TARGETS), "stopped"]
        )
        yield installation
    finally:
        installation.close()


@pytest.mark.anyio
async def test_the_seeds_scenarios(bridge: Installation, way: Way, tmp_path: Path) -> None:
    homelab, felt, sentry = (f"{name}-{way}" for name in SEED_TARGETS)
    projects = {name: bridge.home.with_name("targets") / name for name in (homelab, felt, sentry)}
    async with way.connect(bridge, cwd=str(tmp_path)) as client:
        with anyio.fail_after(PATIENCE):  # the daemon looks at teams.json every other second
            while len((await client.call("queue_status"))["targets"]) <= len(SEED_TARGETS) * len(WAYS):  # noqa: ASYNC110 - polled
                await anyio.sleep(0.1)
        sent = await client.call("send_message", target=homelab, message="Fix the DNS record", id="msg-456")
        assert sent == {"queued": True, "id": "msg-456", "target": homelab}
        again = await client.call("send_message", target=homelab, message="Fix the DNS record", id="msg-456")
        assert again == {"queued": False, "reason": "duplicate"}
        nowhere = await client.call("send_message", target="nowhere", message="hello")
        assert nowhere == {"queued": False, "reason": "unknown target: nowhere"}
        assert (await client.call("send_message", target=felt, message="Update the Go backend"))["queued"]
        status = (await client.call("queue_status"))["targets"]
        assert {name: status[name]["pending"] for name in projects} == {homelab: 1, felt: 1, sentry: 0}
        with Agent(bridge, projects[homelab], session=f"abc-123-{way}") as agent:
            taken = agent.call("take_message")
            assert (taken["id"], taken["target"]) == ("msg-456", homelab) and "Fix the DNS record" in taken["text"]
            agent.call("save_task", current_task="Fix the DNS record", current_task_id="msg-456", last_completed_step=2)
            status = (await client.call("queue_status"))["targets"][homelab]
            assert (status["in_progress"], status["current_task"]) == (1, "Fix the DNS record")
            agent.call("finish_message", id="msg-456", outcome="done", reply="The record is fixed.")
            assert "id" not in agent.call("take_message"), "felt's message is felt's"
        pulled = await client.call("pull_updates", target=homelab)
        assert [(one["type"], one["message_id"]) for one in pulled["updates"]] == [
            ("task", "msg-456"),
            ("reply", "msg-456"),
        ]
        assert pulled["updates"][1]["content"] == "The record is fixed."
        assert (await client.call("pull_updates", target=felt))["updates"] == []
        assert (await client.call("pull_updates", target=homelab, since=pulled["cursor"]))["updates"] == []


def test_a_stop_whose_answer_was_lost_comes_again_before_the_work_it_stops(bridge: Installation) -> None:
    project = bridge.home.with_name("targets") / "stopped"
    with Agent(bridge, project, session="stopped-agent") as agent:
        wait_until(lambda: "stopped" in agent.call("queue_status")["targets"], "the daemon has read teams.json")
        work = agent.call("send_message", target="stopped", message="Move the data")["id"]
        assert agent.call("take_message")["id"] == work
        halt = agent.call("send_message", target="stopped", message="Not now!", priority="stop")["id"]
        assert agent.call("take_message")["id"] == halt
        assert agent.call("take_message")["id"] == halt, "as if the first answer had been lost"
        agent.call("finish_message", id=halt, outcome="done")
        assert agent.call("take_message")["id"] == work
        agent.call("finish_message", id=work, outcome="failed")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("messages", "targets", "workers", "kills"),
    [
        pytest.param(480, 6, 3, 3, id="small"),
        pytest.param(10_000, 20, 8, 10, id="whole", marks=pytest.mark.long),
    ],
)
def test_messages_under_fire_are_finished_once_each_and_in_order(
    embedded: Installation, tmp_path: Path, messages: int, targets: int, workers: int, kills: int
) -> None:
    """As many senders as takers work while the daemon is killed."""
    names = [f"target-{number}" for number in range(targets)]
    write_targets(embedded, tmp_path / "targets", names)
    outside = tmp_path / "outside"
    outside.mkdir()
    acknowledged: dict[str, list[str]] = defaultdict(list)
    finished: dict[str, list[str]] = defaultdict(list)
    lock, progress = threading.Lock(), [0]
    each = messages // workers
    mine = {index: names[index::workers] for index in range(workers)}

    def send(index: int) -> None:
        with Agent(embedded, outside, session=f"sender-{index}") as agent:
            for number in range(each):
                target = mine[index][number % len(mine[index])]
                name = f"{index}-{number}"
                while True:
                    reply = agent.call("send_message", target=target, message=f"work {name}", id=name)
                    if reply["queued"]:
                        break
                    assert reply["reason"] == "full", reply
                acknowledged[target].append(name)

    def take(index: int) -> None:
        with Agent(embedded, outside, session=f"taker-{index}") as agent:
            turn = index
            while progress[0] < messages:
                turn += 1
                target = names[turn % targets]
                taken = agent.call("take_message", target=target)
                if "id" not in taken:
                    continue
                # Only one message of a target is out at a time, so the order of finishing is the order of taking.
                with lock:
                    finished[target].append(taken["id"])
                    progress[0] += 1
                agent.call("finish_message", id=taken["id"], outcome="done", reply=f"did {taken['id']}")

    work = [partial(send, index) for index in range(workers)] + [partial(take, index) for index in range(workers)]
    failures = while_killing(embedded, work, kills, lambda: progress[0], messages)
    assert failures == []
    assert sum(map(len, acknowledged.values())) == messages
    for target in names:
        assert finished[target] == acknowledged[target], f"{target}: every message once, in order"
    with Agent(embedded, outside) as agent:
        status = agent.call("queue_status")["targets"]
        assert all(target["pending"] == target["in_progress"] == 0 for target in status.values())
        assert all("dead_letters" not in target for target in status.values())
