"""The program: finds the command, runs it, and turns whatever happens into words and an exit code."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

from gw_cli import output, stderr
from gw_cli.app import COMPLETE
from gw_cli.exit_codes import ExitCode, verdict
from gw_cli.sanitize import without_address
from gw_core import __version__
from gw_core.errors import GraphileWorkerError

DEBUG = "--debug"
ENDED_BY_SIGNAL = 128
"""A shell shows an end by signal N as this plus N."""
ASKED_TO_END = tuple(
    ENDED_BY_SIGNAL + getattr(signal, name)
    for name in ("SIGHUP", "SIGINT", "SIGPIPE", "SIGTERM", "SIGUSR2", "SIGABRT")
    if hasattr(signal, name)
)
"""Ends by these are passed on as they came; a crash that a supervisor tells of is not repeated."""
LONGEST_FAREWELL = 0.9
"""Seconds for what wants to be called at the end; a stop takes no more than a second beyond its grace period."""


def main_program() -> NoReturn:
    """Run `gw` with the arguments of the process and end the process."""
    output.stand_in_for_closed_streams()
    _end(program(sys.argv[1:]))


def program(arguments: Sequence[str]) -> int:
    """Run `gw` with these arguments and return the exit code."""
    if list(arguments) in (["--version"], ["-V"]):
        output.line(f"gw {__version__}")
        return ExitCode.OK
    if arguments[:1] == [COMPLETE]:
        from gw_cli.name_completion import suggest

        return suggest(arguments[1:])
    arguments, debug = _without_debug(arguments)
    try:
        code = _invoke(arguments)
        output.flush()
        return code
    except output.BrokenOutput:
        return ExitCode.BROKEN_PIPE
    except SystemExit as end:
        # What writes the help ends the program with 1 when nobody reads it.
        if isinstance(end.__context__, BrokenPipeError):
            return ExitCode.BROKEN_PIPE
        raise
    except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001 - the top: everything ends in words and a code
        return _report(problem, debug=debug)


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Take `--debug` out, wherever it stands before a `--`: it belongs to the program and not to a command."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    kept = [each for each in arguments[:end] if each != DEBUG]
    return [*kept, *arguments[end:]], len(kept) < end or bool(os.environ.get("GW_DEBUG"))


def _invoke(arguments: Sequence[str]) -> int:
    import typer  # late: `gw --version` does without

    from gw_cli.root import root_command

    try:
        result: Any = root_command()(args=list(arguments) or ["--help"], prog_name="gw", standalone_mode=False)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except _usage_error() as mistake:
        return _report_usage(mistake)
    return result if isinstance(result, int) else ExitCode.OK


def _usage_error() -> type[Exception]:
    """Return Typer's base of all complaints about arguments, which has no public name in all its versions."""
    import typer

    base: type[Exception] = typer.BadParameter.__mro__[1]
    return base


def _report_usage(mistake: Any) -> int:
    context = mistake.ctx
    where = "gw" if context is None else context.command_path
    message = without_address(mistake.format_message().rstrip("."))
    stderr.error(f"{message[:1].lower()}{message[1:]}; see {where} --help")
    return ExitCode.USAGE


def _report(problem: BaseException, *, debug: bool) -> int:
    code = verdict(problem)
    if isinstance(problem, GraphileWorkerError):
        stderr.error(str(problem))
    elif code == ExitCode.INTERRUPTED:
        stderr.error("interrupted")
    elif isinstance(problem, OSError):
        stderr.error(f"the system refused: {problem}")
    else:
        hint = "" if debug else f"; this is a fault in gw: run the same with {DEBUG} and report what it shows"
        stderr.error(f"{type(problem).__name__}: {problem}{hint}")
    if debug:
        stderr.traceback_of(problem)
    return code


def _end(code: int) -> NoReturn:
    """End the process; for an end by a signal by that very signal, so that the caller sees what happened."""
    output.let_go()
    if code in ASKED_TO_END:
        _let_others_end(code)
        sys.stderr.flush()
        signal.signal(code - ENDED_BY_SIGNAL, signal.SIG_DFL)
        # As process 1 of a container nothing happens here, and the code below says the same.
        os.kill(os.getpid(), code - ENDED_BY_SIGNAL)
    sys.exit(int(code))


def _let_others_end(code: int) -> None:
    """Call what tasks and their libraries registered for the end of the process, which an end by a signal would skip.

    An error reporter sends its last reports there. One that hangs must not hold up the end, nor does any thread.
    """
    if not atexit._ncallbacks():
        return
    last_moment = threading.Timer(LONGEST_FAREWELL, os._exit, (int(code),))
    last_moment.daemon = True
    last_moment.start()
    atexit._run_exitfuncs()  # the interpreter's own way there first joins every thread
    last_moment.cancel()
