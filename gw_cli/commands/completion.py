"""`gw completion`: print the completion script of a shell."""

from __future__ import annotations

from typing import Annotated

import typer

from gw_cli import output
from gw_cli.arguments import one_of
from gw_cli.command import command


@command("completion")
def completion(
    context: typer.Context,
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish")],
) -> None:
    """Print the completion script of a shell.

    It completes commands, options, and the names of tasks, queues, keys and workers in the database.
    """
    from gw_cli.completion import SHELLS  # late: it loads every command

    one_of("SHELL", shell, tuple(SHELLS))
    output.script(SHELLS[shell](context.find_root().command))
