"""`gw sql`: print a statement of gw, ready for EXPLAIN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from gw_cli import output
from gw_cli.command import command
from gw_cli.sanitize import quoted
from gw_cli.settings import Configuration, table
from gw_core.errors import InvalidInputError

STATEMENTS: Final = output.Shape((output.Column("name", "NAME"), output.Column("purpose", "PURPOSE", shrinks=True)))


@command("sql")
def sql(
    configuration: Configuration,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The statement; without it, all are listed")
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A value of the statement; the others are null (repeatable)"),
    ] = None,
    analyze: Annotated[bool, typer.Option("--analyze", help="Use EXPLAIN (ANALYZE, BUFFERS)")] = False,
) -> None:
    """Print a statement of gw, ready for EXPLAIN.

    The output is a script for psql. It uses the settings of the session in which gw runs the statement, shows its plan
    and rolls back. With --analyze the statement runs, so its locks last until then. gw itself connects to nothing.
    """
    from gw_core.front_ends import explain_script, list_statements

    if name is None:
        rows = [{"name": each, "purpose": purpose} for each, purpose in list_statements().items()]
        output.records(rows, STATEMENTS, as_json=False)
        return
    output.script(explain_script(name, configuration[table.SCHEMA], _values(given or ()), analyze=analyze))


def _values(given: Sequence[str]) -> dict[str, str]:
    """Return what was given as NAME=VALUE."""
    values: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise InvalidInputError(f"--set {quoted(each)}: give NAME=VALUE, for example limit=10")
        values[name] = value
    return values
