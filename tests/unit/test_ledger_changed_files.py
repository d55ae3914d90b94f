"""Which files are told as a session's: git decides where it looked, and the transcript elsewhere."""

from __future__ import annotations

import pytest

from holdfast.briefing.ledger.changed_files import changed_files
from holdfast.briefing.ledger.model import Changed, GitStart, GitView, Ledger, Touched

BEGAN, LOOKED = 100, 200


@pytest.mark.parametrize(
    ("file", "view", "own", "meanwhile"),
    [
        pytest.param(Touched("/p/a", at=150), None, ["/p/a"], [], id="git did not look"),
        pytest.param(Touched("/p/a", at=150), GitView(LOOKED, [Changed("/p/a")]), ["/p/a"], [], id="git agrees"),
        pytest.param(Touched("/p/a", at=150), GitView(LOOKED), [], [], id="it is as it was before"),
        pytest.param(Touched("/p/a", at=250), GitView(LOOKED), ["/p/a"], [], id="changed after git looked"),
        pytest.param(Touched("/p/a", at=50), GitView(LOOKED), ["/p/a"], [], id="changed before git looked"),
        pytest.param(Touched("/p/a", at=150), GitView(LOOKED, [], ["/p/a"]), ["/p/a"], [], id="git does not know it"),
        pytest.param(
            Touched("/p/a", at=150),
            GitView(LOOKED, [Changed("/p/a"), Changed("/p/b")], alone=True),
            ["/p/b", "/p/a"],
            [],
            id="it was alone",
        ),
        pytest.param(
            Touched("/p/a", at=150),
            GitView(LOOKED, [Changed("/p/a"), Changed("/p/b")]),
            ["/p/a"],
            ["/p/b"],
            id="others were at work",
        ),
        pytest.param(
            Touched("/p/a", at=150), GitView(LOOKED, [Changed("/p/named")]), ["/p/named"], [], id="a command named it"
        ),
        pytest.param(
            Touched("/p/out", at=150),
            GitView(LOOKED, [Changed("/p/out/b")]),
            ["/p/out/b"],
            [],
            id="in a folder it moved",
        ),
    ],
)
def test_git_decides_between_its_two_looks(
    file: Touched, view: GitView | None, own: list[str], meanwhile: list[str]
) -> None:
    ledger = Ledger("s", modified=[file], mentioned=["/p/named"], git_start=GitStart("/p", None, BEGAN), git_view=view)
    assert tuple([one.path for one in files] for files in changed_files(ledger)) == (own, meanwhile)


def test_what_git_saw_comes_back_as_it_was_written() -> None:
    start = GitStart("/p", "a" * 40, BEGAN, 3, ["0123456789"])
    view = GitView(LOOKED, [Changed("/p/a", removed=True), Changed("/p/b", committed=True)], ["/p/.env"], alone=True)
    ledger = Ledger("s", git_start=start, git_view=view)
    assert Ledger.from_json(ledger.to_json()) == ledger
