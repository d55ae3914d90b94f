"""A lazy data class is a data class: the same methods, the same checks, made when it is first used."""

from __future__ import annotations

import copy
import dataclasses
import re
import threading
from dataclasses import FrozenInstanceError, asdict, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from holdfast.lazy_dataclass import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    x: int
    y: int = 0
    tags: tuple[str, ...] = ()
    origin: ClassVar[str] = "here"

    @property
    def sum(self) -> int:
        return self.x + self.y


@dataclass(frozen=True, slots=True)
class Named(Point):
    name: str = field(default="nobody", compare=False)
    seen: list[int] = field(default_factory=list, hash=False, compare=False)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x")


@dataclass(slots=True)
class Counter(Generic[T]):
    of: T
    count: int = 0


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Ordered:
    number: int


def test_it_compares_hashes_and_shows_itself_like_any_data_class() -> None:
    assert Point(1, 2) == Point(1, y=2) != Point(2, 1)
    assert Point(1) != Named(1), "another class"
    assert len({Point(1), Point(1), Point(2)}) == 2
    assert repr(Point(1, tags=("a",))) == "Point(x=1, y=0, tags=('a',))"
    assert Ordered(number=1) < Ordered(number=2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter("a"))


def test_a_frozen_one_cannot_be_changed() -> None:
    point: Any = Named(1)
    for name in ("x", "name", "unheard_of"):
        with pytest.raises(FrozenInstanceError):
            setattr(point, name, 2)
    with pytest.raises(FrozenInstanceError):
        del point.x
    counter = Counter("a")
    counter.count += 1
    assert counter == Counter("a", 1)


def test_wrong_arguments_are_refused() -> None:
    wrong: Any = Point
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        wrong()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        wrong(1, z=2)
    with pytest.raises(TypeError, match="positional"):
        wrong_order: Any = Ordered
        wrong_order(1)
    with pytest.raises(ValueError, match="x"):
        Named(-1)


def test_functions_of_dataclasses_take_a_class_that_nobody_has_used_yet() -> None:
    @dataclass(frozen=True)
    class Base:
        a: int

    @dataclass(frozen=True)
    class Unused(Base):
        b: str = "b"
        c: list[int] = field(default_factory=list)

    assert is_dataclass(Unused) and [one.name for one in fields(Unused)] == ["a", "b", "c"]
    one = Unused(1)
    assert asdict(replace(one, b="other")) == {"a": 1, "b": "other", "c": []}
    assert one.c is not Unused(1).c
    assert not hasattr(Unused, "c") and Unused.b == "b"


def test_a_class_of_dataclasses_inherits_the_fields_of_a_lazy_one() -> None:
    @dataclass(frozen=True)
    class Base:
        a: int

    @dataclasses.dataclass(frozen=True)
    class Usual(Base):
        b: int

    assert Usual(1, 2) == Usual(a=1, b=2)
    match Usual(1, 2):
        case Base(a):
            assert a == 1


def test_it_is_copied() -> None:
    named = Named(1, name="somebody", seen=[3])
    assert (copy.copy(named).name, copy.deepcopy(named).seen) == ("somebody", [3])


def test_methods_of_its_own_stay() -> None:
    @dataclass
    class Own:
        a: int

        def __init__(self) -> None:
            self.a = 3

        def __repr__(self) -> str:
            return "own"

    assert (Own().a, repr(Own())) == (3, "own")


def test_threads_that_use_a_class_first_at_once_all_get_an_instance() -> None:
    for _ in range(50):

        @dataclass(frozen=True)
        class Fresh:
            a: int
            b: tuple[int, ...] = ()

        threads, together, made = 4, threading.Barrier(4), list[Fresh]()

        def use(fresh: type[Fresh] = Fresh, together: threading.Barrier = together, made: Any = made) -> None:
            together.wait()
            made.append(fresh(1, b=(2,)))

        running = [threading.Thread(target=use) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        assert made == [Fresh(1, (2,))] * threads


def test_what_a_daemon_imports_defines_its_data_classes_lazily() -> None:
    """All but the relay, the guard and the client, which know the standard library alone."""
    source = Path(__file__).parents[2] / "src" / "holdfast"
    eager = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"^from dataclasses import .*\bdataclass\b", path.read_text(), re.M)
    }
    assert eager <= {"client.py", "process/guard_process.py"}
