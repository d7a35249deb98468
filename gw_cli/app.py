"""What the shell starts as `gw`: answers a Tab as soon as it can, and leaves everything else to `gw_cli.program`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

COMPLETE = "--complete"
"""What the completion scripts of the shells call; not for people."""


def main() -> NoReturn:
    """Run `gw` with the arguments of the process and end the process."""
    if sys.argv[1:2] == [COMPLETE]:
        from gw_cli.name_completion import ahead  # before everything else: somebody waits at a Tab key

        ahead(sys.argv[2:])
    from gw_cli.program import main_program

    main_program()


def program(arguments: Sequence[str]) -> int:
    """Run `gw` with these arguments and return the exit code."""
    from gw_cli.program import program as run

    return run(arguments)
