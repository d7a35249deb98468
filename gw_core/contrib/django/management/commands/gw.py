"""`manage.py gw …`: run a command of gw with the database, the schema and the tasks of a backend of `TASKS`."""

from __future__ import annotations

import argparse
import atexit
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from django.utils import autoreload

from gw_core.contrib.django.backend_settings import APP, BACKEND_VARIABLE, CONNECTION_VARIABLE, LANES_VARIABLE
from gw_core.contrib.django.connection import conninfo_of
from gw_core.contrib.django.discovery import DEFAULTS, graphile_backends
from gw_core.errors import InvalidSettingError

RELOADED: Final = 3
"""The exit code with which Django's autoreloader asks to be started again."""

DJANGOS_OPTIONS: Final = ("--settings", "--pythonpath")


class Command(BaseCommand):
    """Starts the program gw; everything after its own options is gw's."""

    help = "Run a command of gw (see: gw --help) with this project's database and tasks."
    requires_system_checks = ()
    suppressed_base_arguments = frozenset(
        {"--version", "--verbosity", "--traceback", "--no-color", "--force-color", "--skip-checks"}
    )

    def run_from_argv(self, argv: list[str]) -> None:
        """Run as `manage.py gw …`: become the program, so that signals and the exit code are its own."""
        options = self.create_parser(argv[0], argv[1]).parse_args(_without_djangos_options(argv[2:]))
        try:
            environment = self._environment(options.backend, options.lane)
        except CommandError as error:
            self.stderr.write(f"{type(error).__name__}: {error}")
            sys.exit(error.returncode)
        connections.close_all()
        if arguments := reloading(options.arguments):
            if os.environ.get(autoreload.DJANGO_AUTORELOAD_ENV) != "true":
                sys.exit(reload_until_stopped())
            autoreload.autoreload_started.connect(_exit_once_on_signals)
            autoreload.run_with_reloader(run_until_reloaded, arguments, environment)
            return
        os.execve(sys.executable, _program(options.arguments), environment)  # noqa: S606 - no shell is wanted

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options that come before gw's command."""
        parser.add_argument("--backend", help="alias in TASKS; by default the only backend of gw, or 'default'")
        parser.add_argument("--lane", action="append", help="with run: serve this lane only (may be repeated)")
        parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the command of gw and its options")

    def handle(self, *arguments: str, **options: Any) -> None:
        """Run as `call_command("gw", …)`; raises `CommandError` for an exit code other than 0."""
        environment = self._environment(options["backend"], options["lane"])
        done = subprocess.run(  # noqa: S603 - our own program, with the caller's arguments
            _program(arguments or options["arguments"]), env=environment, check=False, text=True, capture_output=True
        )
        self.stdout.write(done.stdout, ending="")
        if done.returncode:
            raise CommandError(done.stderr.strip(), returncode=done.returncode)
        self.stderr.write(done.stderr, ending="")

    def _environment(self, alias: str | None, lanes: Sequence[str] | None) -> dict[str, str]:
        backend = _backend(alias)
        settings = DEFAULTS if backend is None else backend.settings
        try:
            connection = conninfo_of(settings.database)
        except InvalidSettingError as error:
            raise CommandError(str(error)) from error
        found = {
            **os.environ,
            CONNECTION_VARIABLE: connection,
            "GW_SCHEMA": settings.schema,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        if backend is not None:
            found |= {"GW_APP": APP, BACKEND_VARIABLE: backend.alias}
        return found | ({LANES_VARIABLE: ",".join(lanes)} if lanes else {})


def reloading(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a worker that is to be started again when the code changes; nothing for other commands.

    `run` takes `--reload`, and `dev` always reloads.
    """
    if arguments[:1] == ["dev"]:
        return list(arguments)
    is_asked = arguments[:1] == ["run"] and "--reload" in arguments
    return [each for each in arguments if each != "--reload"] if is_asked else []


def reload_until_stopped() -> int:
    """Start this command again whenever the autoreloader has seen a change, and return its exit code.

    Django's own loop kills what it has started when it is stopped, and the worker would go on alone.
    """
    environment = {**os.environ, autoreload.DJANGO_AUTORELOAD_ENV: "true"}
    while True:
        child = subprocess.Popen(autoreload.get_child_arguments(), env=environment)  # noqa: S603 - this command
        _on_signals(child.terminate)
        if (code := child.wait()) != RELOADED:
            return code


def _on_signals(function: Callable[[], Any]) -> None:
    """Call the function for the signals that end a worker, except for those that were ignored at the start."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: function())


def _exit_once_on_signals(**_: Any) -> None:
    """Exit at the first signal; a second one, from a terminal and from the parent, would interrupt the exit."""

    def leave() -> None:
        _on_signals(lambda: None)
        sys.exit()

    _on_signals(leave)


def run_until_reloaded(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a worker, which is stopped when Django's autoreloader ends this process; then tasks finish as usual."""
    # The reloader watches the modules of this process, so it has to import those with tasks.
    from gw_core.contrib.django.worker import registry

    if alias := environment.get(BACKEND_VARIABLE):
        registry(alias)
    worker = subprocess.Popen(_program(arguments), env=dict(environment))  # noqa: S603 - our own program
    atexit.register(_stop, worker)
    worker.wait()


def _stop(worker: subprocess.Popen[bytes]) -> None:
    worker.terminate()
    _on_signals(worker.terminate)  # a later one ends the grace period
    worker.wait()


def _program(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-P", "-m", "gw_cli", *arguments]


def _without_djangos_options(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without two that Django takes anywhere, and has applied already."""
    kept: list[str] = []
    given = iter(arguments)
    for each in given:
        if each == "--":
            return [*kept, each, *given]
        if each in DJANGOS_OPTIONS:
            next(given, None)
        elif each.partition("=")[0] not in DJANGOS_OPTIONS:
            kept.append(each)
    return kept


def _backend(alias: str | None) -> Any:
    """Return the backend with this alias, or the only one, or the default one; None when the project has none."""
    backends = {each.alias: each for each in graphile_backends()}
    if alias is None and len(backends) == 1:
        return next(iter(backends.values()))
    found = backends.get(alias or "default")
    if found is None and (alias is not None or backends):
        raise CommandError(f"TASKS has no backend of gw named {alias or 'default'!r}; name one with --backend")
    return found
