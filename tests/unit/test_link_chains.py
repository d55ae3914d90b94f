"""A chain of symbolic links in a project is refused; Python follows it by recursion, which a long one exhausts."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import BadInput
from holdfast.files.inside import OutsideWorktree, read_inside
from holdfast.identity.project import canonical_uri


def test_a_chain_of_links_that_is_too_long_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0").write_text("the end")
    for number in range(1, 2_001):
        (tmp_path / str(number)).symlink_to(str(number - 1))
    assert read_inside(tmp_path, "5", 100) == b"the end"
    with pytest.raises(OutsideWorktree, match="2000 leads through too many symbolic links"):
        read_inside(tmp_path, "2000", 100)
    with pytest.raises(BadInput, match="too many symbolic links"):
        canonical_uri(str(tmp_path / "2000"))
