"""What the commands that look have in common: how a number says how good it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gw_core.operations import Count


def count_text(count: Count) -> str:
    """Return a count for people: `1,234` is exact, `~1,234` an estimate, `~1,234?` a rough one, `1,000+` at least."""
    before, after = {"exact": ("", ""), "at least": ("", "+"), "estimate": ("~", ""), "rough": ("~", "?")}[
        count.quality.value
    ]
    return f"{before}{count.value:,}{after}"


def count_record(count: Count) -> dict[str, object]:
    """Return a count under the keys we promise."""
    return {"count": count.value, "quality": count.quality.value}
