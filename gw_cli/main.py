"""The program `gw`: run a command, and turn any outcome into a message and an exit code."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

from gw_cli import garbage_collection, name_completion, output, stderr
from gw_cli.exit_codes import ExitCode, verdict
from gw_cli.sanitize import uncapitalized, without_address
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
"""The process ends by the same signal; a crash that a supervisor reports is not repeated."""
EXIT_HOOKS_TIMEOUT = 0.9
"""Seconds for the hooks of `atexit`; a stop takes at most a second longer than its grace period."""


def main() -> NoReturn:
    """Run `gw` with the arguments of the process and end the process."""
    if sys.argv[1:2] == [name_completion.COMPLETE]:
        name_completion.start_fetcher(sys.argv[2:])  # first, because a person waits for the completion
    output.stand_in_for_closed_streams()
    _end(program(sys.argv[1:]))


def program(arguments: Sequence[str]) -> int:
    """Run `gw` with these arguments and return the exit code."""
    if arguments[:1] == [name_completion.COMPLETE]:
        return _complete(arguments[1:])
    arguments, debug = _without_debug(arguments)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    try:
        if list(arguments) in (["--version"], ["-V"]):
            output.line(f"gw {__version__}")
            code: int = ExitCode.OK
        else:
            code = _invoke(arguments)
        output.flush()
        return code
    except output.BrokenOutput:
        return ExitCode.BROKEN_PIPE
    except SystemExit as end:
        # Typer exits with 1 if the reader of the help closes the pipe.
        if isinstance(end.__context__, BrokenPipeError):
            return ExitCode.BROKEN_PIPE
        raise
    except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001 - the top: every error becomes a message and a code
        return _report(_interruption_behind(problem) or problem, debug=debug)


def _interruption_behind(problem: BaseException) -> KeyboardInterrupt | None:
    """Return the Ctrl-C that an error followed from, such as that of a pipeline that could not end."""
    # An error that is raised again from one of its consequences closes a circle, which has no end.
    passed: list[BaseException] = []
    behind: BaseException | None = problem
    while behind is not None and behind not in passed:
        if isinstance(behind, KeyboardInterrupt):
            return behind
        passed.append(behind)
        behind = behind.__cause__ or behind.__context__
    return None


def _complete(words: Sequence[str]) -> int:
    """Print what the last word of a command line may be; nothing if anything fails."""
    with suppress(Exception):
        from gw_cli.commands import root_command
        from gw_cli.completion import completed

        kinds = {kind: partial(name_completion.names, kind) for kind in name_completion.KINDS}
        for line in completed(root_command(), words[1:], kinds):
            output.line(line)
        output.flush()
    return ExitCode.OK


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Remove `--debug` from the arguments before a `--`, because it belongs to no command."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    kept = [each for each in arguments[:end] if each != DEBUG]
    return [*kept, *arguments[end:]], len(kept) < end or bool(os.environ.get("GW_DEBUG"))


def _invoke(arguments: Sequence[str]) -> int:
    import typer  # late: `gw --version` does not need it

    from gw_cli.commands import root_command

    try:
        result: Any = root_command()(args=arguments, prog_name="gw", standalone_mode=False)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except _usage_error() as mistake:
        return _report_usage(mistake)
    return result if isinstance(result, int) else ExitCode.OK


def _usage_error() -> type[Exception]:
    """Return Typer's base class of argument errors, which has no public name in all its versions."""
    import typer

    base: type[Exception] = typer.BadParameter.__mro__[1]
    return base


def _report_usage(mistake: Any) -> int:
    context = mistake.ctx
    where = "gw" if context is None else context.command_path
    message = without_address(mistake.format_message().rstrip("."))
    option = getattr(mistake, "option_name", None)
    if where == "gw" and option in _flags_of_commands():
        message = f"{option} follows the command, as in: gw list {option} …"
    stderr.error(f"{uncapitalized(message)}; see {where} --help")
    return ExitCode.USAGE


def _flags_of_commands() -> set[str]:
    from gw_cli.settings.table import SETTINGS

    return {flag for setting in SETTINGS for flag in (setting.flag, *setting.flags)}


def _report(problem: BaseException, *, debug: bool) -> int:
    code = verdict(problem)
    if isinstance(problem, GraphileWorkerError):
        stderr.error(str(problem))
    elif code == ExitCode.INTERRUPTED:
        stderr.error("interrupted")
    elif isinstance(problem, OSError):
        stderr.error(f"the operating system reported an error: {problem}")
    else:
        hint = "" if debug else f"; this is a bug in gw: run the command with {DEBUG} and report the output"
        stderr.error(f"{type(problem).__name__}: {problem}{hint}")
    if debug:
        stderr.traceback_of(problem)
    return code


def _end(code: int) -> NoReturn:
    """End the process; after a signal, end it by the same signal, so that the caller can see it."""
    output.let_go()
    garbage_collection.skip_the_last()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # An impatient Ctrl-C ends the process now, or soon anyway; it prints no traceback of a hook.
        signal.signal(signal.SIGINT, signal.SIG_IGN if code in ASKED_TO_END else signal.SIG_DFL)
    if code in ASKED_TO_END:
        _run_exit_hooks(code)
        sys.stderr.flush()
        signal.signal(code - ENDED_BY_SIGNAL, signal.SIG_DFL)
        # As process 1 of a container this has no effect, and the exit code below reports the signal.
        os.kill(os.getpid(), code - ENDED_BY_SIGNAL)
    sys.exit(int(code))


def _run_exit_hooks(code: int) -> None:
    """Run the hooks of `atexit`, which an end by a signal would skip.

    Error reporters send their last reports there. A hook that hangs must not delay the end.
    """
    if not atexit._ncallbacks():
        return
    deadline = threading.Timer(EXIT_HOOKS_TIMEOUT, os._exit, (int(code),))
    deadline.daemon = True
    deadline.start()
    atexit._run_exitfuncs()  # a normal exit would first join every thread
    deadline.cancel()
