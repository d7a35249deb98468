"""Run `gw`, or Python code, as a process that need not import its modules: a fork of a server that has imported them.

It takes a quarter of the processor time.

In all else it is a process of its own: arguments, environment, folder, streams, signals, and how it ends.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PROGRAM = Path(sys.executable).with_name("gw")
DEADLINE_SECONDS = 60.0
MAX_REQUEST = 100_000


@dataclass(frozen=True, slots=True)
class CliResult:
    """How a process ended, and what it printed."""

    code: int
    out: str
    err: str


def run_gw(
    arguments: Sequence[str],
    *,
    folder: str | Path,
    environment: Mapping[str, str],
    stdin: bytes = b"",
    stdout: int | None = None,
) -> CliResult:
    """Run the program to its end; `stdout` is a file descriptor to write to instead."""
    request = {"arguments": arguments, "folder": str(folder), "environment": dict(environment)}
    return _ended(request, stdin=stdin, stdout=stdout)


def run_code(code: str, *, folder: str | Path, environment: Mapping[str, str]) -> CliResult:
    """Run Python code to its end, as `python -W error -c` does."""
    return _ended({"code": code, "folder": str(folder), "environment": dict(environment)})


def _ended(request: dict[str, Any], *, stdin: bytes = b"", stdout: int | None = None) -> CliResult:
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        source.write(stdin)
        source.seek(0)
        code = _run(request, [source.fileno(), out.fileno() if stdout is None else stdout, err.fileno()])
        out.seek(0)
        err.seek(0)
        return CliResult(code, out.read().decode(), err.read().decode())


def _run(request: dict[str, Any], streams: list[int]) -> int:
    """Return how the program ended; kill it when that takes too long."""
    reading, writing = os.pipe()
    with open(reading) as report:
        try:
            socket.send_fds(_server(), [json.dumps(request).encode()], [*streams, writing])
        finally:
            os.close(writing)
        timeout = threading.Timer(DEADLINE_SECONDS, os.kill, (int(report.readline()), signal.SIGKILL))
        timeout.start()
        try:
            return os.waitstatus_to_exitcode(int(report.readline()))
        finally:
            timeout.cancel()


@cache
def _server() -> socket.socket:
    """Start the server of this process; it ends with the connection."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen([sys.executable, "-P", __file__], stdin=theirs)
    atexit.register(server.wait)
    atexit.register(ours.close)
    return ours


# -- the server -------------------------------------------------------------------------------------------------------


def _serve() -> dict[str, Any]:
    """Fork for each request; return it in the process that is the program."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    channel = socket.socket(fileno=0)
    while True:
        data, received, _, _ = socket.recv_fds(channel, MAX_REQUEST, 4)
        if not data:
            os._exit(0)
        if os.fork() == 0:
            channel.detach()
            _attend(received)
            return json.loads(data)
        for descriptor in received:
            os.close(descriptor)


def _attend(received: list[int]) -> None:
    """Return in the program; the process between it and the server reports its id and how it ended."""
    *streams, report = received
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if program := os.fork():
        os.write(report, b"%d\n" % program)
        os.write(report, b"%d\n" % os.waitpid(program, 0)[1])
        os._exit(0)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    for descriptor in received:
        os.close(descriptor)


def _become(request: dict[str, Any]) -> None:
    """Take over what a new process gets from the one that starts it."""
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["folder"])
    is_code = "code" in request
    sys.path.insert(0, "" if is_code else str(PROGRAM.parent))
    sys.argv = ["-c"] if is_code else [str(PROGRAM), *request["arguments"]]


def _run_code(code: str) -> None:
    warnings.simplefilter("error")
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(code, "<string>", "exec"), vars(module))  # noqa: S102 - a program of the manual


if __name__ == "__main__":
    import psycopg_pool  # noqa: F401

    import gw_core.clients.client
    import gw_core.domain.cron.crontab
    import gw_core.events
    import gw_core.postgres.read.job_queries
    import gw_core.runner.runner
    import gw_core.selection.parser
    import gw_core.tasks.references  # noqa: F401
    from gw_cli.main import main

    request = _serve()
    _become(request)
    _run_code(request["code"]) if "code" in request else main()
