"""A condition that finds words anywhere in texts, in any case, the same on both engines."""

from __future__ import annotations

from collections.abc import Sequence

MOST_WORDS = 8


def containing(engine: str, columns: Sequence[str], words: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return a condition and its parameters: each of the words stands in one of the columns.

    It looks at every row that the rest of a query leaves, so that rest must be bounded.
    """
    # By the rules of C, PostgreSQL takes half the time, and knows no more cases than SQLite.
    like = 'COLLATE "C" ILIKE' if engine == "postgres" else "LIKE"
    terms, params = [], {}
    for place, word in enumerate(words[:MOST_WORDS]):
        # Only the case of ASCII letters is folded; for others, the usual spellings are searched.
        spellings = {word} if word.isascii() else {word, word.lower(), word.upper(), word.title()}
        either = []
        for which, spelling in enumerate(sorted(spellings)):
            name = f"word{place}_{which}"
            params[name] = f"%{_escaped(spelling)}%"
            either += [f"{column} {like} :{name} ESCAPE '!'" for column in columns]
        terms.append(f"({' OR '.join(either)})")
    return " AND ".join(terms) or "1 = 0", params


def _escaped(word: str) -> str:
    return word.replace("!", "!!").replace("%", "!%").replace("_", "!_")
