"""The demos by name, and how one is played."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.demo import cut_off, killed
from holdfast.demo.screen import Screen
from holdfast.demo.stage import Ask, Stage
from holdfast.lazy_dataclass import dataclass

OPENING = "Real processes in a throwaway directory; your own data is not touched. Ctrl-C stops it."


@dataclass(frozen=True, slots=True)
class Demo:
    """One demo."""

    what: str
    """What is seen in it."""
    play: Callable[[Stage, Screen], None]
    pictured: tuple[int, ...]
    """The scenes that its picture shows."""


DEMOS = {
    "killed": Demo(
        "an agent and the daemon are killed with -9; the next agent has all of the reasoning", killed.play, (2, 3, 4)
    ),
    "cut-off": Demo(
        "an agent is killed in the middle of an edit; another one finishes its work", cut_off.play, (2, 3, 4)
    ),
}


def perform(name: str, screen: Screen, ask: Ask, environment: Mapping[str, str], *, keep: bool) -> Stage:
    """Play a demo to its end; returns its stage, which is there no more unless it was to be kept."""
    with Stage(ask, environment, keep=keep) as stage:
        screen.prose(OPENING)
        DEMOS[name].play(stage, screen)
    return stage
