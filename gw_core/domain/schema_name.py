"""What can be the name of a schema."""

from __future__ import annotations

from typing import Final

from gw_core.domain.errors import InvalidSettingError

MAX_BYTES: Final = 63
"""PostgreSQL cuts longer names without an error."""


def check_schema_name(name: str) -> None:
    """Raise `InvalidSettingError` unless PostgreSQL can keep `name` as it is: 1 to 63 bytes of UTF-8, no NUL."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        size = 0
    if not 1 <= size <= MAX_BYTES or "\x00" in name:
        raise InvalidSettingError(
            f"{name!r} is not a valid schema name; PostgreSQL takes 1 to {MAX_BYTES} bytes of UTF-8 without NUL"
        )
