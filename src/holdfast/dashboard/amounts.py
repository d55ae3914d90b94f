"""Tokens, money and lengths of time, as people read them."""

from __future__ import annotations

UNITS = (("M", 1_000_000), ("k", 1_000))
MICRO = 1_000_000
LENGTHS = (("day", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def tokens(count: float) -> str:
    """Return a number of tokens in short: 950, 12.3k, 4.5M."""
    for unit, size in UNITS:
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 100 * size else f"{count / size:.0f}{unit}"
    return f"{count:.0f}"


def dollars(amount: float) -> str:
    """Return an amount in dollars; less than a cent is not shown as zero."""
    if 0 < amount < 0.01:
        return "< $0.01"
    return f"${amount:,.2f}"


def money(microusd: int, unpriced: int) -> str:
    """Return what something cost. A cost that no agent reported is unknown, not zero."""
    if unpriced and not microusd:
        return "unknown"
    return f"{'at least ' if unpriced else ''}{dollars(microusd / MICRO)}"


def lasting(ms: int | None) -> str:
    """Return a length of time in words."""
    if ms is None:
        return "unknown"
    for name, length in LENGTHS:
        if ms >= length:
            count = ms // length
            return f"{count} {name}{'s' if name == 'day' and count > 1 else ''}"
    return "under 1 s"
