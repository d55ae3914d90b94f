"""The server that Holdfast is compared with: sequential thinking, in memory, on Node.js."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.workshop import WORKSHOP

PACKAGE = "@modelcontextprotocol/server-sequential-thinking"
TOOL = "sequentialthinking"


class PeerMissing(Exception):
    """The peer cannot be had on this machine."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The installed peer and how to start it."""

    version: str
    command: tuple[str, ...]
    env: dict[str, str]


def sequential_thinking() -> Peer:
    """The peer, installed beside the benchmarks on first use."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        missing = "node" if node is None else "npm"
        raise PeerMissing(f"{missing} is not on the PATH: install Node.js with npm to compare with {PACKAGE}")
    place = WORKSHOP / "peer"
    package = place / "node_modules" / PACKAGE
    if not (package / "package.json").exists():
        _install(npm, place)
    description = json.loads((package / "package.json").read_text())
    entry = next(iter(description["bin"].values()))
    # Without its log of every thought the peer is faster: it is measured at its best.
    return Peer(
        description["version"],
        (node, str(package / entry)),
        {**os.environ, "DISABLE_THOUGHT_LOGGING": "true"},
    )


def _install(npm: str, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    print(f"Installing {PACKAGE} into {place.relative_to(WORKSHOP.parent)} …", flush=True)
    installed = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(place), PACKAGE],
        capture_output=True,
        text=True,
    )
    if installed.returncode != 0:
        shutil.rmtree(place)
        raise PeerMissing(f"npm could not install {PACKAGE}: {installed.stderr.strip()}")
