"""The command `gw`: its options and the list of its commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gw_cli import output
from gw_cli.command import CommandRegistry, leaf_commands as leaf_commands, new_app
from gw_cli.commands import ENTRIES
from gw_core import __version__

EPILOGUE = (
    "Options can also be set in the environment as GW_OPTION, or in gw.toml or [tool.gw] of pyproject.toml as "
    "option = value. 'gw config show' prints each value and where it comes from."
)


def root_command() -> Any:
    """Return the command `gw`; its commands are loaded on first use."""
    CommandRegistry.entries = ENTRIES
    app = new_app(CommandRegistry, EPILOGUE)
    app.callback()(_gw)
    return typer.main.get_command(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        output.line(f"gw {__version__}")
        raise typer.Exit


def _gw(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version", callback=_show_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error")] = False,
) -> None:
    """Graphile Worker for Python: a PostgreSQL job queue."""
