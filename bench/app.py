"""`python -m bench`: choose rows, measure them, print and keep the figures."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

from bench import machine, report
from bench.contenders import node_versions
from bench.frame import OURS, Row, RowResult, measure
from bench.measure import Bench
from bench.pypi import PACKAGES
from bench.rows import all_rows
from bench.server import Server
from bench.sizes import SCALES, Sizes

FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code is 1 when a job was lost or ran twice, or gw failed at a row."""
    given = _parser().parse_args(arguments)
    with Server(given.database) as server:
        rows = _chosen(all_rows(Bench(server, _sizes(given))), given.rows, without=given.without)
        if given.list:
            print("\n".join(f"{row.name:28} {row.title}" for row in rows))
            return 0
        if given.alone:
            rows = [row.alone() for row in rows]
        where = machine.describe(server)
        if not given.alone:
            where |= node_versions() | {"from PyPI": ", ".join(PACKAGES)}
        where |= {"scale": f"{given.scale}, {given.rounds} rounds"}
        results = _until_interrupted(measure(rows, rounds=given.rounds, say=_say))
        where["load after"] = machine.load()
    print(report.description(where), end="\n\n")
    print(report.table(results))
    if given.json is not None:
        given.json.write_text(json.dumps(report.as_json(where, results), indent=2) + "\n")
    return FAILED if any(_failed(result) for result in results) else 0


def _sizes(given: argparse.Namespace) -> Sizes:
    sizes = SCALES[given.scale]
    if given.minutes is None:
        return sizes
    return replace(sizes, soak_seconds=60 * given.minutes, console_seconds=60 * given.minutes)


def _until_interrupted(results: Iterator[RowResult]) -> list[RowResult]:
    """Collect the rows; Ctrl-C ends the measuring, and what there is so far is printed."""
    collected = []
    try:
        for result in results:
            collected.append(result)  # noqa: PERF402 - a comprehension would lose them all
    except KeyboardInterrupt:
        _say("interrupted; these are the rows measured so far")
    return collected


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
    parser.add_argument("--minutes", type=float, metavar="N", help="how long vacuum-soak and console last")
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
