"""What was done long ago is dropped, a part at a time."""

from __future__ import annotations

from functools import partial

from holdfast.bridge.queries import retention
from holdfast.store import Store


async def forget_old(store: Store, keep_ms: int) -> int:
    """Drop messages that were done, and what was told of a target, so long ago; how many rows there were.

    Whatever waits stays, and whatever ended undone; and the newest of both, so that numbers go on and no cursor points
    behind what comes next.
    """
    dropped = 0
    while rows := await store.read(lambda tx: retention.done(tx, tx.now() - keep_ms)):
        dropped += await store.write(lambda tx: retention.drop_messages(tx, rows))
    for target, last in await store.read(lambda tx: retention.told(tx, tx.now() - keep_ms)):
        while some := await store.write(partial(retention.drop_updates, target=target, last=last)):
            dropped += some
    return dropped
