"""Finds the browser that these tests drive; `python -m tests.browser.chromium` installs what it may."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ON_MACOS = ("Google Chrome", "Chromium")
AXE_VERSION = "4.10.2"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holdfast-tests"
FLAGS = (
    "--no-sandbox",  # root has none; the pages are ours
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
)
MISSING = "no Chromium here: the dashboard is NOT tested in a browser (`make browser` installs one where it may)"


def find() -> str | None:
    """The browser of this machine, or the one that Playwright has downloaded."""
    named = os.environ.get("HOLDFAST_TEST_BROWSER")
    for found in (named, *map(shutil.which, NAMES)):
        if found:
            return found
    for name in ON_MACOS:
        program = Path(f"/Applications/{name}.app/Contents/MacOS/{name}")
        if program.is_file():
            return str(program)
    return _playwrights_own()


def axe_source() -> str | None:
    """The text of axe-core, fetched from npm once; None without npm or a registry."""
    script = CACHE / f"axe-core-{AXE_VERSION}" / "node_modules" / "axe-core" / "axe.min.js"
    npm = shutil.which("npm")
    if not script.is_file() and npm is not None:
        folder = script.parents[2]
        folder.mkdir(parents=True, exist_ok=True)
        wanted = [f"axe-core@{AXE_VERSION}", "--prefix", str(folder), "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run([npm, "install", *wanted], check=False, stdout=subprocess.DEVNULL, timeout=120)
    return script.read_text() if script.is_file() else None


def _playwrights_own() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


def _install() -> None:
    """As root with apt its Chromium, elsewhere Playwright's own; neither is an error."""
    if shutil.which("apt-get") and os.geteuid() == 0:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update", "-q"], ["install", "-qy", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", *command], env=environment, check=False, stdout=subprocess.DEVNULL)
    if find() is None:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


if __name__ == "__main__":
    if find() is None:
        _install()
    browser = find()
    sys.stdout.write(f"browser for the tests: {browser or MISSING}\n")
