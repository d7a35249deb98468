"""`python -m bench`: choose rows, measure them, print and keep the figures."""

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
from bench.contenders import node_versions
from bench.frame import OURS, Row, RowResult, measure
from bench.measure import Bench
from bench.progress import TimeLeft
from bench.pypi import PACKAGES
from bench.rows import all_rows
from bench.server import Server
from bench.sizes import SCALES, Sizes

FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code is 1 when a job was lost or ran twice, or gw failed at a row."""
    given = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Server(given.database) as server:
        rows = _chosen(all_rows(Bench(server, _sizes(given))), given.rows, without=given.without)
        if given.list:
            print("\n".join(f"{row.name:28} {row.title}" for row in rows))
            return 0
        if given.alone:
            rows = [row.alone() for row in rows]
        where = {"command": _command(given)} | machine.describe(server)
        if not given.alone:
            where |= node_versions() | {"from PyPI": ", ".join(PACKAGES)}
        where |= {"scale": f"{given.scale}, {given.rounds} rounds"}
        results = _measured(rows, given, where)
    print(report.description(where), end="\n\n")
    print(report.table(results))
    return FAILED if any(_failed(result) for result in results) else 0


def _sizes(given: argparse.Namespace) -> Sizes:
    sizes = SCALES[given.scale]
    if given.minutes is None:
        return sizes
    return replace(sizes, soak_seconds=60 * given.minutes, console_seconds=60 * given.minutes)


def _command(given: argparse.Namespace) -> str:
    """Return what was asked for as it would be typed, without what is nobody's business."""
    words = ["python", "-m", "bench", "--scale", given.scale, "--rounds", str(given.rounds)]
    words += ["--alone"] * given.alone + (["--minutes", f"{given.minutes:g}"] if given.minutes is not None else [])
    words += [word for row in given.without for word in ("--without", row)]
    return shlex.join([*words, *given.rows])


def _measured(rows: Sequence[Row], given: argparse.Namespace, where: dict[str, str]) -> list[RowResult]:
    """Measure, and keep what there is so far in the file; Ctrl-C or SIGTERM ends it, and what there is is printed."""
    left = TimeLeft(rows, rounds=given.rounds, scale=given.scale)
    results: dict[str, RowResult] = {}
    try:
        for result in measure(rows, rounds=given.rounds, say=lambda line: _say(f"{line} ({left})")):
            results[result.row.name] = result
            left.note(results.values())
            _keep(given.json, where, results.values())
    except KeyboardInterrupt:
        where["interrupted"] = f"in the row {[*results][-1]}" if results else "before the first row"
        _say("interrupted; this is what was measured so far")
    where["load after"] = machine.load()
    _keep(given.json, where, results.values())
    return [*results.values()]


def _keep(file: Path | None, where: Mapping[str, str], results: Iterable[RowResult]) -> None:
    """Write the file anew, so that it is whole at every moment."""
    if file is None:
        return
    fresh = file.with_name(f"{file.name}.new")
    fresh.write_text(json.dumps(report.as_json(where, results), indent=2) + "\n")
    fresh.replace(file)


def _failed(result: RowResult) -> bool:
    """Whether a job was lost or ran twice, at whosever side, or ours could not be measured."""
    return any(
        side.wrong is not None or (side.missing is not None and who.startswith(OURS))
        for who, side in result.sides.items()
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure gw beside its peers, all on one server, in turn."
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help="which rows, as patterns; all without (see --list)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each side is measured (default: 3)")
    parser.add_argument("--scale", choices=SCALES, default="small", help="how much each row does (default: small)")
    parser.add_argument("--minutes", type=float, metavar="N", help="how long soaks and the console last")
    parser.add_argument("--without", action="append", default=[], metavar="ROW", help="leave these rows out")
    parser.add_argument("--alone", action="store_true", help="measure gw only, none of its peers")
    parser.add_argument("--database", metavar="URL", help="a server where we may make databases, instead of our own")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to this file as well")
    parser.add_argument("--list", action="store_true", help="print the rows and measure nothing")
    return parser


def _chosen(rows: Sequence[Row], patterns: Sequence[str], *, without: Sequence[str]) -> list[Row]:
    for pattern in (*patterns, *without):
        if not any(fnmatch(row.name, pattern) for row in rows):
            raise SystemExit(f"there is no row {pattern!r}; --list prints those there are")
    wanted = [row for row in rows if not patterns or any(fnmatch(row.name, pattern) for pattern in patterns)]
    return [row for row in wanted if not any(fnmatch(row.name, pattern) for pattern in without)]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
