"""Forms of the lines that Holdfast itself writes to an agent: no line of an outside text may look like one.

A new text of ours needs its form here: a test visits every output to an agent, and requires that each line has one of
these forms, or the mark of an outside text.
"""

from __future__ import annotations

import re

FORMS = (
    # A message, a notice, a team's prompt
    r"\[Message ",
    r"\[End of message ",
    r"\[It was handed out before ",
    r"\[STOP: ",
    r"\[Announce it: ",
    r"\[\d+ more are waiting; ",
    r"\[What others said: ",
    r"\[What this conversation was about so far:\]",
    r"\[Notice from ",
    r"\[Your earlier conversation ",
    # A session that starts, or continues
    r"\[?Session restarted\. ",
    r"You are working on message ",
    r"\d+ messages? (?:is|are) waiting; ",
    # A briefing and its items
    r"\[Holdfast briefing for ",
    r"- (?:The user (?:asked|answered)|The agent said last|(?:The last|An earlier|The newest) session"
    r"|Also unfinished|It (?:worked in|worked on another machine|was on branch)|Not committed yet|All files modified"
    r"|Earlier work(?: of this repository)?|Asked last before|Between them"
    r"|That turn has|Typed after that|Todos|Plan|Files (?:modified|read)|Errors (?:met|named)|Failed, and|Ruled out"
    r"|Commits|Task|Messages waiting|Protocol session|Reasoning session|This (?:team asked|project is team)"
    r"|At work here now)\b",
    r"- (?:[A-Za-z0-9._-]{1,64}|somebody outside) asked this team ",
    r"Nothing is known of earlier work",
    r"Which project this is",
    # What was thought
    r"(?:Auto-recovered|Loaded) session ",
    r"No sessions found for project",
    r"No project root is known",
    r"Title: ",
    r"Next thought number: ",
    r"Branch \"",
    r"The last thoughts, quoted from the record",
    r"(?:## )?Thought \d+",
    r"It goes on: ",
    # A protocol
    r"Holdfast(?::| could not| lost| told) ",
    r"A commit comes too early: ",
    r"Session \d{4}-\d{2}-\d{2}-session-\d+ ",
    # Errors, and what an agent's own program says
    r"E_[A-Z_]+: ",
    r"System:",
    r"</?system-reminder",
)
"""Regular expressions, each matching the beginning of a line."""

_OWN = re.compile(rf"\s{{0,8}}(?:[-*#] ?)?(?:{'|'.join(FORMS)})", re.IGNORECASE)


def has_own_form(line: str) -> bool:
    """Return whether a line could be mistaken for one of Holdfast's own."""
    return _OWN.match(line) is not None
