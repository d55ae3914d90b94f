"""What the agent that starts reads of the work before it is true: by a real hook, from a real daemon."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

from bench.recall_outputs import OUTPUTS
from tests.installation import Installation, wait_until
from tests.process.hooks import starts
from tests.repository import Repository
from tests.shared_daemon import Guest
from tests.transcripts import Transcript

from holdfast.store.sqlite import system_clock
from holdfast.times import iso

CHANGES = {
    "echo x > one.txt": "one.txt",
    "echo x >> two.txt": "two.txt",
    "mv three.txt four.txt": "four.txt, three.txt (removed)",
    "rm five.txt": "five.txt (removed)",
    "git mv six.txt seven.txt": "seven.txt, six.txt (removed)",
    "cp eight.txt nine.txt": "nine.txt",
    "perl -pi -e 's/x/w/' ten.txt": "ten.txt",
    "sed -i '' 's/x/w/' eleven": "eleven",
    "sed -i 's/x/w/' twelve.txt": "twelve.txt",
    "echo x | tee thirteen.txt": "thirteen.txt",
    "cat > fourteen.txt <<'EOF'\nx\nEOF": "fourteen.txt",
    "touch fifteen.txt": "fifteen.txt",
}


def written(transcript: Transcript, folder: Path) -> Path:
    """A transcript of the present, as its agent has left it by now."""
    for entry in transcript.entries:
        entry["timestamp"] = iso(system_clock())
    return transcript.write(folder)


def line_of(told: str, begins: str) -> str:
    return next((line for line in told.splitlines() if line.startswith(f"- {begins}")), "")


def next_told(holdfast: Installation, project: Path, folder: Path) -> str:
    return starts(holdfast, project, folder / f"{uuid.uuid4()}.jsonl")["context"]


def test_only_errors_that_a_program_ran_into_are_told_as_met(
    shared_embedded: Guest, project: Path, tmp_path: Path
) -> None:
    transcript = Transcript(project)
    transcript.ask("Look at everything.")
    for output in OUTPUTS:
        arguments = {"command": output.command} if output.tool == "Bash" else {"file_path": output.command}
        transcript.run(output.tool, arguments, output.text, error=output.failed)
    starts(shared_embedded, project, written(transcript, tmp_path / "transcripts"))
    met = line_of(next_told(shared_embedded, project, tmp_path / "transcripts"), "Errors met: ")
    told = set(re.findall(r"\w+(?:Error|Exception)\b", met))
    assert told and told <= {name for output in OUTPUTS for name in output.met}
    assert "NewSilentError" not in met


def test_without_a_repository_every_command_that_changes_files_is_told(
    shared_embedded: Guest, project: Path, tmp_path: Path
) -> None:
    transcript = Transcript(project)
    transcript.ask("Change them all.")
    for command in CHANGES:
        transcript.run("Bash", {"command": command})
    starts(shared_embedded, project, written(transcript, tmp_path / "transcripts"))
    modified = line_of(next_told(shared_embedded, project, tmp_path / "transcripts"), "Files modified")
    assert modified.partition(": ")[2] == ", ".join(reversed(CHANGES.values()))


def test_what_git_saw_of_a_session_is_told_to_the_next_one(
    shared_embedded: Guest, project: Path, tmp_path: Path
) -> None:
    repository = Repository(project, {"fence.txt": "x\n", "gate.txt": "x\n", "post.txt": "x\n"})
    transcript, folder = Transcript(project), tmp_path / "transcripts"
    path = folder / f"{transcript.session_id}.jsonl"
    starts(shared_embedded, project, path)
    repository.write("generated.txt", "by a program that no command names\n")
    repository.git("rm", "-q", "gate.txt")
    transcript.ask("Mend it.")
    transcript.run("Bash", {"command": "make all"})
    transcript.say("Mended.")
    written(transcript, folder)
    payload = {"session_id": path.stem, "transcript_path": str(path), "cwd": str(project), "reason": "other"}
    assert shared_embedded.run("hook", "SessionEnd", stdin=json.dumps(payload)).returncode == 0

    def is_seen() -> bool:
        return "generated.txt" in shared_embedded.run("resume", str(project)).stdout

    wait_until(is_seen, "the daemon has looked at git")
    modified = line_of(next_told(shared_embedded, project, folder), "Files modified")
    assert modified == "- Files modified (2): generated.txt, gate.txt (removed)"
