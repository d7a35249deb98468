"""`gw`, and `python -m gw_cli`: postpone the collection of garbage, then import the program and run it."""

from __future__ import annotations

from typing import NoReturn

from gw_cli import garbage_collection


def main() -> NoReturn:
    """Run `gw` with the arguments of the process and end the process."""
    garbage_collection.postpone()
    # Late: these imports create most objects of a start.
    from gw_cli.main import main as program

    program()


if __name__ == "__main__":
    main()
