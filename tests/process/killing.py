"""Work that goes on while the daemon is killed again and again."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence

from tests.installation import Installation


def while_killing(
    holdfast: Installation, work: Sequence[Callable[[], None]], kills: int, done: Callable[[], int], total: int
) -> list[BaseException]:
    """Run the work in threads while the daemon is killed at random moments, spread over all of it."""
    failures: list[BaseException] = []

    def guarded(step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException as error:  # noqa: BLE001 - reported by the test that waits for it
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(step,)) for step in work]
    for thread in threads:
        thread.start()
    chance = random.Random(20)
    try:
        for kill in range(kills):
            target = total * kill // kills + chance.randrange(max(1, total // kills))
            while done() < min(target, total - 1) and any(thread.is_alive() for thread in threads):
                time.sleep(0.001)
            time.sleep(chance.random() * 0.02)
            if holdfast.daemon() is not None:
                holdfast.kill_daemon()
    finally:
        for thread in threads:
            thread.join()
    return failures
