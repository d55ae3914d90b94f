"""The one place that names the version, and compares it with others."""

__version__ = "0.1.0"


def is_newer(one: str, other: str) -> bool:
    """Return whether version `one` comes after version `other`."""
    return _numbers(one) > _numbers(other)


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; a text without any counts as the oldest."""
    numbers: list[int] = []
    for part in version.split("."):
        digits = "".join(char for char in part if char in "0123456789")
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)
