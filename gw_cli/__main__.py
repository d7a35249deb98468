"""`gw`, and `python -m gw_cli`: postpone the collection of garbage, then import the program and run it."""

from __future__ import annotations

import signal
from typing import NoReturn

from gw_cli import garbage_collection


def main() -> NoReturn:
    """Run `gw` with the arguments of the process and end the process."""
    garbage_collection.postpone()
    interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interrupts:
        # A Ctrl-C during the imports ends the process without a traceback: nothing is there yet to be finished.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Late: these imports create most objects of a start.
    from gw_cli.main import main as program

    if interrupts:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    program()


if __name__ == "__main__":
    main()
