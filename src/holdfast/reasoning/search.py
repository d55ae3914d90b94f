"""Full-text search over thoughts, titles and tags: what is searched for is data, never a query language."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from holdfast.errors import BadInput
from holdfast.reasoning.fulltext import (
    INDEXED,
    Term,
    fold,
    folded_with_places,
    holds,
    indexed,
    terms_of,
)
from holdfast.reasoning.model import Session, Status
from holdfast.reasoning.queries import search as search_queries
from holdfast.reasoning.queries import sessions
from holdfast.reasoning.queries.sessions import Scope
from holdfast.reasoning.results import FoundLately, SearchPage
from holdfast.store import Tx
from holdfast.text import one_line
from holdfast.text.quoting import in_quotes

MAX_OFFSET = 10_000
TITLE_HITS = 10
TITLES_LOOKED_AT = 2_000
"""How many of the most recent sessions are searched by title and tags, which the engines do not index."""
TERMS_TRIED = 8
"""How many terms are tried alone when all of them together find nothing."""
AROUND = 100
"""How many characters a snippet shows before the first hit."""
SNIPPET = 300
MOST_UNINDEXED = 20
"""Thoughts that are searched as they are: to index them first, the disk would have to be waited for."""
SHORT = 5
"""Letters from which on a beginning is looked for in the index: of fewer, too many words begin like that."""


def index_some(tx: Tx) -> bool:
    return search_queries.fill(tx, "thoughts", "thoughts_fts")


def search(tx: Tx, scope: Scope, query: str, limit: int, offset: int) -> SearchPage:
    """Search one page, best hits first; sessions whose title or tags match come before all thoughts."""
    if offset > MAX_OFFSET:
        raise BadInput("cursor", f"is beyond the first {MAX_OFFSET} hits", recovery="Search for something narrower.")
    terms = terms_of(query)
    hits = search_queries.hits(tx, scope, terms, limit + 1, offset)
    named = [] if offset else _named(tx, scope, terms)
    return SearchPage(
        terms=tuple(terms),
        everywhere=scope.root is None,
        sessions=tuple(named),
        thoughts=tuple(
            (hit, sessions.thoughts(tx, hit.session_id, hit.number, hit.number, 1, cut=INDEXED)[0])
            for hit in hits[:limit]
        ),
        offset=offset,
        more=len(hits) > limit,
        advice=None if hits or named or offset else _what_to_relax(tx, scope, terms),
    )


def whole_words(query: str) -> str:
    """Return the query in a form whose last word is no beginning."""
    return query + ('"' if query.count('"') % 2 else '""')


def newest(tx: Tx, query: str, limit: int) -> FoundLately:
    """Search everything that is not deleted, the newest first; titles and tags by themselves."""
    terms, scope = terms_of(query), Scope(None, (Status.ACTIVE, Status.ARCHIVED))
    is_short = len(terms[-1].text) < SHORT
    looked_for = terms_of(whole_words(query)) if is_short else terms
    unindexed = search_queries.unindexed(tx, "thoughts", "thoughts_fts", MOST_UNINDEXED + 1)
    hits = search_queries.newest(tx, scope, looked_for, limit)
    for row_id, content in unindexed:
        if has_all(content, looked_for) and (found := search_queries.place_of(tx, scope, row_id)):
            hits.append(found)
    hits = sorted(hits, reverse=True)[:limit]
    if is_short and '"' not in query:
        hits = sorted({*hits, *search_queries.containing_lately(tx, scope, query.split(), limit)}, reverse=True)[:limit]
    words = [fold(word) for term in terms for word in term.words]
    named: list[Session] = []
    for session_id, title, tags in search_queries.titles(tx, words, TITLES_LOOKED_AT):
        text = fold(f"{title} {tags}")
        if all(word in text for word in words) and names_match(title, (tags,), terms):
            session = sessions.session(tx, session_id)
            named += [session] if session is not None else []
            if len(named) == limit:
                break
    pairs = [
        (sessions.session(tx, session_id), sessions.thoughts(tx, session_id, number, number, 1, cut=INDEXED))
        for _, session_id, number in hits
    ]
    return FoundLately(
        terms=tuple(terms),
        sessions=tuple(named),
        thoughts=tuple((session, thoughts[0]) for session, thoughts in pairs if session is not None and thoughts),
        all_searched=len(unindexed) <= MOST_UNINDEXED,
    )


def _what_to_relax(tx: Tx, scope: Scope, terms: Sequence[Term]) -> str:
    """Try looser searches, and name those that find something."""

    def finds(these: Sequence[Term], where: Scope = scope) -> bool:
        return bool(search_queries.hits(tx, where, these, 1) or _named(tx, where, these))

    ways: list[str] = []
    if scope.root is not None and finds(terms, replace(scope, root=None)):
        ways.append('scope "all" finds it in another project')
    if set(scope.statuses) != set(Status) and finds(terms, replace(scope, statuses=tuple(Status))):
        ways.append('status "all" finds it in a session of another status')
    loose = [Term((word,)) for term in terms for word in term.words]
    if len(loose) > len(terms) and finds(loose):
        ways.append("the same words are found apart: leave the quotes out")
    if len(terms) > 1:
        alone = [term for term in terms[:TERMS_TRIED] if finds([term])]
        if alone:
            ways.append(f"found by themselves: {', '.join(in_quotes(term.text, 40) for term in alone)}")
    if not ways:
        ways.append("no part of it is found: try other words, or the beginning of one as the last word")
    return f"No session here contains all of it; {'; '.join(ways)}."


def snippet(text: str, terms: Sequence[Term]) -> str:
    """Return the text around the first hit on one line, every hit marked with **."""
    text = unicodedata.normalize("NFC", text[:INDEXED])
    folded, places = folded_with_places(text)
    pattern = re.compile("|".join(term.pattern for term in terms))
    first = pattern.search(folded)
    start = max(0, places[first.start()] - AROUND) if first else 0
    end = start + SNIPPET
    shown, at = "", start
    for hit in pattern.finditer(folded, bisect_left(places, start)):
        begins, ends = places[hit.start()], places[hit.end() - 1] + 1
        if begins >= end:
            break
        shown += f"{text[at:begins]}**{text[begins:ends]}**"
        at = ends
    shown += text[at:end]
    line = one_line(shown, len(shown) + 1)
    return f"{'…' if start else ''}{line}{'…' if end < len(text) else ''}"


def names_match(title: str, tags: Sequence[str], terms: Sequence[Term]) -> bool:
    return has_all(" ".join((title, *tags)), terms)


def has_all(text: str, terms: Sequence[Term]) -> bool:
    """Return whether a text contains all terms, as the index would find them."""
    tokens = indexed(text).split()
    return all(holds(tokens, term) for term in terms)


def _named(tx: Tx, scope: Scope, terms: Sequence[Term]) -> list[Session]:
    recent = sessions.sessions_page(tx, scope, None, TITLES_LOOKED_AT)
    return [found for found in recent if names_match(found.title, found.tags, terms)][:TITLE_HITS]
