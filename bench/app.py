"""`python -m bench`: choose benchmarks, measure them, print and keep the figures."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

from bench import machine, report
from bench.benchmarks import all_benchmarks
from bench.harness import OURS, Benchmark, BenchmarkResult, measure
from bench.measure import Bench
from bench.peers import node_versions
from bench.progress import Eta
from bench.python_queues import PACKAGES
from bench.rust import rust_version
from bench.scales import SCALES, Scale
from bench.server import Server

FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code is 1 when a job was lost or ran twice, or gw failed at a benchmark."""
    given = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Server(given.database) as server:
        benchmarks = _chosen(all_benchmarks(Bench(server, _scale(given))), given.benchmarks, without=given.without)
        if given.list:
            print("\n".join(f"{benchmark.name:28} {benchmark.title}" for benchmark in benchmarks))
            return 0
        if given.against:
            benchmarks = [each.against(given.against.resolve()) for each in benchmarks if OURS in each.sides]
        if given.alone:
            benchmarks = [benchmark.alone() for benchmark in benchmarks]
        where = {"command": command_line(given)} | machine.describe(server)
        if not (given.alone or given.against):
            where |= node_versions() | rust_version() | {"from PyPI": ", ".join(PACKAGES)}
        where |= {"scale": f"{given.scale}, {given.rounds} rounds"}
        results = measured(benchmarks, given, where)
    print(report.description(where), end="\n\n")
    print(report.table(results))
    return FAILED if any(_failed(result) for result in results) else 0


def _scale(given: argparse.Namespace) -> Scale:
    scale = SCALES[given.scale]
    if given.minutes is None:
        return scale
    return replace(scale, soak_seconds=60 * given.minutes, console_seconds=60 * given.minutes)


def command_line(given: argparse.Namespace) -> str:
    """Return the command line of this run, without the database."""
    words = ["python", "-m", "bench", "--scale", given.scale, "--rounds", str(given.rounds)]
    words += ["--alone"] * given.alone + (["--minutes", f"{given.minutes:g}"] if given.minutes is not None else [])
    words += ["--against", given.against.name] if given.against else []
    words += [word for benchmark in given.without for word in ("--without", benchmark)]
    return shlex.join([*words, *given.benchmarks])


def measured(
    benchmarks: Sequence[Benchmark], given: argparse.Namespace, where: dict[str, str]
) -> list[BenchmarkResult]:
    """Measure, and keep what there is so far in the file; Ctrl-C or SIGTERM ends it, and what there is is printed."""
    left = Eta(benchmarks, rounds=given.rounds, scale=given.scale)
    results: dict[str, BenchmarkResult] = {}
    try:
        for result in measure(benchmarks, rounds=given.rounds, say=lambda line: _say(f"{line} ({left})")):
            results[result.benchmark.name] = result
            left.note(results.values())
            _keep(given.json, where, results.values())
    except KeyboardInterrupt:
        where["interrupted"] = f"in the benchmark {[*results][-1]}" if results else "before the first benchmark"
        _say("interrupted; this is what was measured so far")
    where["load after"] = machine.load()
    _keep(given.json, where, results.values())
    return [*results.values()]


def _keep(file: Path | None, where: Mapping[str, str], results: Iterable[BenchmarkResult]) -> None:
    """Replace the file, so that it is complete at any time."""
    if file is None:
        return
    fresh = file.with_name(f"{file.name}.new")
    fresh.write_text(json.dumps(report.as_json(where, results), indent=2) + "\n")
    fresh.replace(file)


def _failed(result: BenchmarkResult) -> bool:
    """Whether a job was lost or ran twice, at whosever side, or ours could not be measured."""
    return any(
        side.wrong is not None or (side.missing is not None and who.startswith(OURS))
        for who, side in result.sides.items()
    )


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure gw beside its peers, all on one server, in turn."
    )
    parser.add_argument(
        "benchmarks", nargs="*", metavar="BENCHMARK", help="which benchmarks, as patterns; all without (see --list)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often each side is measured (default: 3)")
    parser.add_argument(
        "--scale", choices=SCALES, default="small", help="how much each benchmark does (default: small)"
    )
    parser.add_argument("--minutes", type=float, metavar="N", help="how long soaks and the console last")
    parser.add_argument(
        "--without", action="append", default=[], metavar="BENCHMARK", help="leave these benchmarks out"
    )
    parser.add_argument(
        "--against", type=Path, metavar="CHECKOUT", help="measure gw beside gw of another checkout, with its .venv"
    )
    parser.add_argument("--alone", action="store_true", help="measure gw only, none of its peers")
    parser.add_argument("--database", metavar="URL", help="a server where we may make databases, instead of our own")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to this file as well")
    parser.add_argument("--list", action="store_true", help="print the benchmarks and measure nothing")
    return parser


def _chosen(benchmarks: Sequence[Benchmark], patterns: Sequence[str], *, without: Sequence[str]) -> list[Benchmark]:
    for pattern in (*patterns, *without):
        if not any(fnmatch(benchmark.name, pattern) for benchmark in benchmarks):
            raise SystemExit(f"there is no benchmark {pattern!r}; --list prints those there are")
    wanted = [
        benchmark
        for benchmark in benchmarks
        if not patterns or any(fnmatch(benchmark.name, pattern) for pattern in patterns)
    ]
    return [benchmark for benchmark in wanted if not any(fnmatch(benchmark.name, pattern) for pattern in without)]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
