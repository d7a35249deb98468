"""`python -m bench.render_docs`: write the table of docs/benchmarks.md, and all figures as CSV, from bench/results."""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench import progress, report
from bench.harness import BenchmarkResult

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "bench" / "results"
PAGE: Final = ROOT / "docs" / "benchmarks.md"
DATA: Final = ROOT / "docs" / "benchmarks.csv"
REGION: Final = re.compile(r"(<!-- generated: results -->\n).*?(<!-- end -->)", re.DOTALL)
DESCRIBED: Final = ("machine", "PostgreSQL", "server settings", "Python", "Node.js worker", "from PyPI")
NODE: Final = "Node tuned"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: a figure of gw, and of the peer it is compared with."""

    what: str
    benchmark: str
    figure: str
    peer: str | None = None
    side: str = "gw"
    named: str | None = None
    """How the table calls the peer."""


LINES: Final = (
    Line("Trivial jobs, one process", "drain", "jobs/s", NODE),
    Line("Trivial jobs, two processes", "drain-two", "jobs/s", NODE),
    Line("Trivial jobs, two processes", "python-peers", "jobs/s", "pgqueuer"),
    Line("Trivial jobs, two processes", "python-peers", "jobs/s", "procrastinate"),
    Line("Enqueue to start, median", "latency", "p50 ms", NODE),
    Line("Enqueue to start, 99th percentile", "latency", "p99 ms", NODE),
    Line("One named queue", "queues-1", "jobs/s", "Node unbatched"),
    Line("1,000 named queues", "queues-1000", "jobs/s", NODE),
    Line("100,000 named queues", "queues-100000", "jobs/s", NODE),
    Line("Behind 100,000 jobs of locked queues", "stuck", "jobs/s", "gw, nothing stuck", named="nothing in the way"),
    Line("Claim from 10 million jobs, 99th percentile", "backlog", "p99 ms, 10,000,000"),
    Line("Adding jobs in bulk", "bulk-add", "jobs/s", "Node"),
    Line("`run --once` on an empty queue", "start", "ms", "Node defaults"),
    Line("Connections at 100 concurrent jobs", "connections-100", "connections", "Node, -m 100"),
    Line("Memory over a million jobs", "memory", "peak MiB", NODE),
    Line("Console refresh at 10 million jobs, server time, 95th percentile", "console", "tick p95 ms in the server"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page and the data, or print how long each benchmark took."""
    given = parser().parse_args(arguments)
    runs = read_runs(given.results)
    if given.seconds:
        took = {name: seconds for _, results in runs.values() for name, seconds in progress.learned(results).items()}
        print(json.dumps(took, indent=2))
        return 0
    given.page.write_text(with_results(given.page.read_text("utf-8"), runs), "utf-8")
    with given.data.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(data_rows(runs))
    return 0


Run = tuple[Mapping[str, str], Sequence[BenchmarkResult]]


def read_runs(folder: Path) -> dict[str, Run]:
    """Read every run of a folder, by the name of its file."""
    return {file.stem: report.from_json(json.loads(file.read_text())) for file in sorted(folder.glob("*.json"))}


def with_results(page: str, runs: Mapping[str, Run]) -> str:
    """Return the page with the table and the machine of these runs."""
    if not REGION.search(page):
        raise SystemExit("the page has no region <!-- generated: results -->")
    where = next(iter(runs.values()))[0]
    machine = "\n".join(f"- {name}: {where[name]}" for name in DESCRIBED if name in where)
    return REGION.sub(lambda found: f"{found[1]}\n{table(runs.values())}\n\n{machine}\n\n{found[2]}", page)


def table(runs: Iterable[Run]) -> str:
    """Return the table; of a benchmark in several runs, the one with the most rounds counts."""
    measured = sorted((result for _, results in runs for result in results), key=_rounds)
    results = {result.benchmark.name: result for result in measured}
    lines = [_cells(line, results[line.benchmark]) for line in LINES if line.benchmark in results]
    header = ("Measurement", "gw", "Compared with", "Its figure", "gw / it")
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ("---", "--:", "---", "--:", "--:"), *lines))


def data_rows(runs: Mapping[str, Run]) -> Iterator[Sequence[object]]:
    """Yield a heading and one row for each figure of each side."""
    yield "run", "benchmark", "side", "figure", "median", "min", "max", "rounds"
    for run, (_, results) in runs.items():
        for result in results:
            for side, measured in result.sides.items():
                for figure in measured.figures():
                    values = measured.values(figure)
                    found = (f"{value:.6g}" for value in (median(values), min(values), max(values)))
                    yield run, result.benchmark.name, side, figure, *found, len(values)


def _rounds(result: BenchmarkResult) -> int:
    return max(len(side.rounds) for side in result.sides.values())


def _cells(line: Line, result: BenchmarkResult) -> Sequence[str]:
    ours = result.sides[line.side].median(line.figure)
    if line.peer is None:
        return line.what, _shown(ours, line.figure), "", "", ""
    theirs = result.sides[line.peer].median(line.figure)
    ratio = f"{ours / theirs:,.2f}" if ours and theirs and ours < 100 * theirs else "> 100"
    return line.what, _shown(ours, line.figure), line.named or line.peer, _shown(theirs, line.figure), f"{ratio} x"


def _shown(value: float | None, figure: str) -> str:
    if value is None:
        return "not measured"
    unit = next((unit for unit in ("jobs/s", "MiB", "ms") if unit in figure), "")
    return f"{value:,.0f} {unit}".rstrip() if value >= 20 or value == int(value) else f"{value:.2g} {unit}".rstrip()


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.render_docs", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the files that --json wrote")
    parser.add_argument("--page", type=Path, default=PAGE, help="page whose table is replaced")
    parser.add_argument("--data", type=Path, default=DATA, help="CSV file to write")
    parser.add_argument("--seconds", action="store_true", help="print the contents of bench/expected_seconds.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
