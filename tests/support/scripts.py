"""The scripts that `gw migrate --sql` prints, for a connection that is not psql's."""

from __future__ import annotations


def without_psql_commands(script: str) -> str:
    """Return the script without the lines that only psql understands, such as `\\o /dev/null`."""
    return "\n".join(line for line in script.splitlines() if not line.startswith("\\"))
