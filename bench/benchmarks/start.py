"""Short programs as whole processes: a worker that finds nothing to do, and short commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bench import checkout
from bench.harness import Benchmark, Goal, Measured
from bench.measure import Bench
from bench.peers import Gw, Node, Peer
from bench.processes import Command, run_together

DURATION: Final = "ms"
BARE: Final = "psycopg"
BARE_PROGRAM: Final = "import psycopg, sys; psycopg.connect(sys.argv[1]).execute('select 1')"


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """`run --once` on an empty queue; `gw list` and `gw add` beside a program that only connects."""
    return (
        Benchmark(
            name="start",
            title="run --once on an empty queue, whole process",
            sides={"gw": lambda: start(bench, Gw()), "Node defaults": lambda: start(bench, Node())},
            goals=(Goal(figure=DURATION, at_most=400), Goal(figure=DURATION, beside="Node defaults", at_most=1.2)),
        ),
        Benchmark(
            name="short-commands",
            title="gw list, gw add, and a connection with one statement, whole process",
            sides={
                "gw list": lambda: short_command(bench, "-m", "gw_cli", "list", "--connection"),
                "gw add": lambda: short_command(bench, "-m", "gw_cli", "add", "noop", "--connection"),
                BARE: lambda: short_command(bench, "-c", BARE_PROGRAM),
            },
            goals=(
                Goal(figure=DURATION, beside=BARE, at_most=1.3),
                Goal(figure=DURATION, beside=BARE, at_most=1.3, of="gw add"),
            ),
        ),
    )


def start(bench: Bench, peer: Peer) -> Measured:
    """Start a worker on an empty queue."""
    return _timed(bench, peer, lambda url, folder: peer.worker(url, folder))


def short_command(bench: Bench, *arguments: str) -> Measured:
    """Run a command of Python; the connection string is its last argument."""
    return _timed(
        bench,
        Gw(),
        lambda url, folder: Command(
            argv=(checkout.python(), *arguments, url), folder=folder, environment=checkout.environment()
        ),
    )


def _timed(bench: Bench, peer: Peer, command_in: Callable[[str, Path], Command]) -> Measured:
    """Start it, and some times more; the first time, which fills caches, is not counted."""
    with bench.place() as (url, folder):
        peer.install(url)
        command = command_in(url, folder)
        durations = [run_together([command]).seconds for _ in range(1 + bench.scale.starts)]
    return Measured({DURATION: median(durations[1:]) * 1000})
