"""The options of commands that print a page of a long list."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

MAX_ROWS: Final = 100_000
DEFAULT_LIMIT: Final = "50"

After = Annotated[
    str | None, typer.Option("--after", metavar="CURSOR", help="Start after the cursor of a previous list")
]


def row_limit(most: int = MAX_ROWS) -> Any:
    """Return the option of the number of rows."""
    words = f"Maximum number of rows, up to {most} [default: {DEFAULT_LIMIT}]"
    return typer.Option("--limit", "-n", metavar="N", help=words, show_default=False)


def search_timeout(default: str) -> Any:
    """Return the option of a time limit with its default."""
    words = f"Time limit of the search [default: {default}]"
    return typer.Option("--timeout", metavar="DURATION", help=words, show_default=False)


Limit = Annotated[str, row_limit()]
