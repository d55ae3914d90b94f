"""Every project that Holdfast knows: the roots that belong together, and when something was last done there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.identity.project import Root, RootSource
from holdfast.lazy_dataclass import dataclass
from holdfast.records import project_queries
from holdfast.records.project_queries import KnownRoot
from holdfast.store import Store, Tx


@dataclass(frozen=True, slots=True)
class KnownProject:
    """A project under all of its roots."""

    roots: tuple[str, ...]
    """The last used first."""
    key: str | None
    last_at: int
    paused: bool = False

    @property
    def root(self) -> Root:
        """The root that was used last."""
        return Root(self.roots[0], self.key, RootSource.DIRECTORY)

    @property
    def name(self) -> str:
        """What names it in addresses."""
        return self.key or self.roots[0]


async def known_projects(store: Store, others: Iterable[KnownRoot] = ()) -> list[KnownProject]:
    """Return every project, the last used first; `others` are roots that are known elsewhere, as those of teams."""

    def read(tx: Tx) -> tuple[list[KnownRoot], set[str]]:
        return project_queries.roots(tx), project_queries.paused(tx)

    found, paused = await store.read(read)
    return together([*found, *others], paused)


def together(found: Sequence[KnownRoot], paused: Iterable[str] = ()) -> list[KnownProject]:
    """Put the roots of one key together."""
    keys = {one.root: one.key for one in found if one.key is not None}
    times: dict[str, dict[str, int]] = {}
    for one in found:
        of_project = times.setdefault(keys.get(one.root, one.root), {})
        of_project[one.root] = max(of_project.get(one.root, 0), one.last_at)
    silent = set(paused)
    projects = [
        KnownProject(
            tuple(sorted(roots, key=lambda root: (-roots[root], root))),
            name if name in keys.values() else None,
            max(roots.values()),
            not silent.isdisjoint(roots),
        )
        for name, roots in times.items()
    ]
    return sorted(projects, key=lambda one: (-one.last_at, one.roots))
