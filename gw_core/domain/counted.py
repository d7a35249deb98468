"""Write a number with its noun, and the first of many names."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun, singular or plural: "1 job", "0 jobs", "1,200 jobs".

    The noun may have a verb: `counted(2, "job is", "jobs are")`. Without `many`, the plural has an "s".
    """
    return f"1 {one}" if number == 1 else f"{number:,} {many or one + 's'}"


def some(names: Sequence[str]) -> str:
    """Return the first three names, and how many more there are."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
