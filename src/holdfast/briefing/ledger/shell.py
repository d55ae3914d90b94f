"""Parses shell commands as far as needed to know which programs they would run.

It is not a shell: nothing is expanded, and whatever is unknown until it runs is left open. It never fails; text that no
shell would accept yields whatever commands can be recognized in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from holdfast.lazy_dataclass import dataclass

MAX_TEXT = 256 * 1024
"""Characters that are parsed; the rest is ignored."""
MAX_COMMANDS = 4_096
MAX_DEPTH = 24
"""Limit for nested substitutions; deeper ones are not parsed."""

KEYWORDS = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "coproc"})
"""Words that a command can follow."""

_PLAIN = re.compile(r"[^\s;&|()<>'\"\\$`]+")
_BLANK = re.compile(r"(?:[ \t\r\f\v]++|\\\n)++")
_REDIRECTION = re.compile(r"<<<|<<-|<<|<>|<&|<|&>>|&>|>>|>\||>&|>")
_IN_DOUBLE_QUOTES = re.compile(r"[^\"\\$`]+")
_PARENTHESIS = re.compile(r"[()]")
_BACKTICKED = re.compile(r"(?:[^`\\]++|\\.)*+", re.DOTALL)
_ANSI_C_QUOTED = re.compile(r"(?:[^'\\]++|\\.)*+", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!_-]")
_ESCAPED_IN_DOUBLE_QUOTES = {"$": "$", "`": "`", '"': '"', "\\": "\\", "\n": ""}
_ANSI_C = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command, without its quotes."""

    text: str
    literal: bool = True
    """False if its value is unknown until it runs ($NAME, $(…))."""
    bare: bool = True
    """False if part of it was quoted: such a word is not a keyword."""


@dataclass(slots=True)
class Command:
    """A simple command: its words, and where its input comes from and its output goes."""

    words: list[Word]
    scope: int
    """Which shell runs it: a subshell has a number of its own."""
    upstream: Command | None = None
    """The command whose output is piped into this one."""
    outputs: list[Word] = field(default_factory=list)
    """Files that its output is redirected to."""


@dataclass(frozen=True, slots=True)
class Script:
    """The commands of a text, in the order in which a shell would reach them."""

    commands: Sequence[Command]
    parents: Sequence[int]
    """For each scope, the scope that started it; 0 is its own parent."""


def read(text: str) -> Script:
    """Parse every simple command in `text`, including those in subshells and substitutions."""
    reader = _Reader(text[:MAX_TEXT], [], [0], 0)
    reader.script(0, nested=False)
    return Script(reader.commands, reader.parents)


def without_keywords(words: Sequence[Word]) -> list[Word]:
    """Return a command's words without `then`, `do` and the like before them."""
    first = 0
    while first < len(words) and words[first].bare and words[first].text in KEYWORDS:
        first += 1
    return list(words[first:])


@dataclass(slots=True)
class _HereDocument:
    delimiter: str
    expands: bool
    strips_tabs: bool
    scope: int


class _Reader:
    """One pass over a text, including its substitutions."""

    def __init__(self, text: str, commands: list[Command], parents: list[int], depth: int) -> None:
        self.text = text
        self.commands = commands
        self.parents = parents
        self.at = 0
        self.depth = depth
        self._awaited: list[_HereDocument] = []
        self._unclosed = 0

    def script(self, scope: int, *, nested: bool) -> None:
        """Read commands up to the end, or up to the parenthesis that closes a nested script."""
        now = Command([], scope)
        while self.at < len(self.text):
            if blank := _BLANK.match(self.text, self.at):
                self.at = blank.end()
                continue
            char = self.text[self.at]
            if char == "\n":
                self.at += 1
                now = self._ended(now)
                self._here_documents()
            elif char == "#":
                self._to_line_end()
            elif (match := _REDIRECTION.match(self.text, self.at)) and not self._is_process_substitution():
                self._redirection(match, now)
            elif char in ";&|":
                now = self._operator(now)
            elif char == "(":
                now = self._opened(now)
            elif char == ")":
                self.at += 1
                now = self._ended(now)
                if nested:
                    return
            else:
                self._word_into(now)
        self._ended(now)

    def _ended(self, now: Command, *, piped: bool = False) -> Command:
        if now.words or now.outputs:
            self.commands.append(now)
            if len(self.commands) >= MAX_COMMANDS:
                self.at = len(self.text)
        return Command([], now.scope, upstream=now if piped else None)

    def _operator(self, now: Command) -> Command:
        is_pipe = self.text[self.at] == "|" and not self.text.startswith("||", self.at)
        while self.at < len(self.text) and self.text[self.at] in ";&|":
            self.at += 1
        return self._ended(now, piped=is_pipe)

    def _opened(self, now: Command) -> Command:
        if self.text.startswith("((", self.at) and self._skipped_arithmetic():
            return now
        if now.words and now.words[-1].text.endswith("=") and self.text[self.at - 1] == "=":
            self._discarded_list(now.scope)
            return now
        now = self._ended(now)
        self.at += 1
        self._nested_script(now.scope)
        return now

    def _nested_script(self, scope: int) -> None:
        if self.depth >= MAX_DEPTH:
            return
        self.parents.append(scope)
        self.depth += 1
        self.script(len(self.parents) - 1, nested=True)
        self.depth -= 1

    def _discarded_list(self, scope: int) -> None:
        """Skip NAME=(word word …), whose words are not a command."""
        self.at += 1
        kept = len(self.commands)
        self._nested_script(scope)
        del self.commands[kept:]

    def _skipped_arithmetic(self) -> bool:
        """Skip ((…)), where << is not a here-document; False if there is none, or it is never closed."""
        if self._unclosed >= MAX_DEPTH:  # searching for the end again and again would be quadratic on hostile text
            return False
        depth = 0
        for found in _PARENTHESIS.finditer(self.text, self.at):
            depth += 1 if found[0] == "(" else -1
            if depth == 0:
                if self.text[found.start() - 1] != ")":
                    return False
                self.at = found.end()
                return True
        self._unclosed += 1
        return False

    def _to_line_end(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _is_process_substitution(self) -> bool:
        return self.text.startswith(("<(", ">("), self.at)

    def _redirection(self, match: re.Match[str], now: Command) -> None:
        self.at = match.end()
        if blank := _BLANK.match(self.text, self.at):
            self.at = blank.end()
        target = self._word(now.scope)
        if match[0] in ("<<", "<<-"):
            self._awaited.append(_HereDocument(target.text, target.bare, match[0] == "<<-", now.scope))
        elif ">" in match[0] and not (match[0] == ">&" and re.fullmatch(r"\d+|-", target.text)):
            now.outputs.append(target)

    def _here_documents(self) -> None:
        awaited, self._awaited = self._awaited, []
        for document in awaited:
            body = self._body(document)
            if document.expands and ("$" in body or "`" in body) and self.depth < MAX_DEPTH:
                inner = _Reader(body, self.commands, self.parents, self.depth + 1)
                while inner.at < len(body):  # a quote in the body does not quote; it only ends one step of this loop
                    inner._double_quoted([], document.scope)

    def _body(self, document: _HereDocument) -> str:
        lines: list[str] = []
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line = self.text[self.at : end]
            self.at = min(end + 1, len(self.text))
            if document.strips_tabs:
                line = line.lstrip("\t")
            if line == document.delimiter:
                break
            lines.append(line)
        return "\n".join(lines)

    def _word_into(self, now: Command) -> None:
        began = self.at
        word = self._word(now.scope)
        if self.at == began:  # a character that cannot begin a word: skip it, or this would loop forever
            self.at += 1
        elif not (word.bare and word.text.isdigit() and self.text[self.at : self.at + 1] in ("<", ">")):
            now.words.append(word)

    def _word(self, scope: int) -> Word:
        parts: list[str] = []
        literal, bare = True, True
        while self.at < len(self.text):
            if plain := _PLAIN.match(self.text, self.at):
                parts.append(plain[0])
                self.at = plain.end()
                continue
            char = self.text[self.at]
            if char == "\\":
                bare = self._escaped(parts) and bare
            elif char == "'":
                bare = False
                self._single_quoted(parts)
            elif char == '"':
                bare = False
                self.at += 1
                literal = self._double_quoted(parts, scope) and literal
            elif char in "$`":
                bare = bare and not self.text.startswith(("$'", '$"'), self.at)
                literal = self._expansion(parts, scope) and literal
            elif self._is_process_substitution():
                self.at += 2
                self._nested_script(scope)
                literal = False
            else:
                break
        return Word("".join(parts), literal, bare)

    def _escaped(self, parts: list[str]) -> bool:
        """Read a backslash and what it escapes; True for a line continuation, which yields no text."""
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if following == "\n":
            return True
        parts.append(following)
        return False

    def _single_quoted(self, parts: list[str]) -> None:
        end = self.text.find("'", self.at + 1)
        end = len(self.text) if end < 0 else end
        parts.append(self.text[self.at + 1 : end])
        self.at = end + 1

    def _double_quoted(self, parts: list[str], scope: int) -> bool:
        """Read up to and including the closing quote; return whether the text is literal."""
        literal = True
        while self.at < len(self.text):
            if plain := _IN_DOUBLE_QUOTES.match(self.text, self.at):
                parts.append(plain[0])
                self.at = plain.end()
                continue
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                break
            if char == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                parts.append(_ESCAPED_IN_DOUBLE_QUOTES.get(following, "\\" + following))
                self.at += 2
            elif self.text.startswith(("$'", '$"'), self.at):
                parts.append("$")
                self.at += 1
            else:
                literal = self._expansion(parts, scope) and literal
        return literal

    def _expansion(self, parts: list[str], scope: int) -> bool:
        """Read what begins with $ or a backtick; return whether it is literal nevertheless."""
        if self.depth >= MAX_DEPTH:
            self.at += 1
            return False
        self.depth += 1
        try:
            return self._expanded(parts, scope)
        finally:
            self.depth -= 1

    def _expanded(self, parts: list[str], scope: int) -> bool:
        if self.text[self.at] == "`":
            self._backticks(scope)
            return False
        if self.text.startswith("$'", self.at):
            self._ansi_c_quoted(parts)
            return True
        if self.text.startswith('$"', self.at):
            self.at += 2
            return self._double_quoted(parts, scope)
        self.at += 1
        if self.text.startswith("((", self.at) and self._skipped_arithmetic():
            return False
        if self.text.startswith("(", self.at):
            self.at += 1
            self._nested_script(scope)
            return False
        if self.text.startswith("{", self.at):
            self._braced(scope)
            return False
        if name := _NAME.match(self.text, self.at):
            self.at = name.end()
            return False
        parts.append("$")
        return True

    def _backticks(self, scope: int) -> None:
        match = _BACKTICKED.match(self.text, self.at + 1)
        inside = match[0] if match else ""
        self.at = min(self.at + 1 + len(inside) + 1, len(self.text))
        self.parents.append(scope)
        unescaped = re.sub(r"\\([`\\$])", r"\1", inside)
        inner = _Reader(unescaped, self.commands, self.parents, self.depth + 1)
        inner.script(len(self.parents) - 1, nested=False)

    def _braced(self, scope: int) -> None:
        """Read ${…}: only substitutions inside it can be commands."""
        self.at += 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "}":
                self.at += 1
                return
            if char == "\\":
                self.at += 2
            elif char == "'":
                self._single_quoted([])
            elif char == '"':
                self.at += 1
                self._double_quoted([], scope)
            elif char in "$`":
                self._expansion([], scope)
            else:
                self.at += 1

    def _ansi_c_quoted(self, parts: list[str]) -> None:
        match = _ANSI_C_QUOTED.match(self.text, self.at + 2)
        inside = match[0] if match else ""
        self.at = min(self.at + 2 + len(inside) + 1, len(self.text))
        parts.append(re.sub(r"\\(.)", lambda escape: _ANSI_C.get(escape[1], escape[1]), inside, flags=re.DOTALL))
