"""`python -m bench.render_docs`: write the table of docs/benchmarks.md, its picture, and all figures as CSV."""

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
from bench.chart import Bar, chart
from bench.harness import OURS, BenchmarkResult

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "bench" / "results"
PAGE: Final = ROOT / "docs" / "benchmarks.md"
DATA: Final = ROOT / "docs" / "benchmarks.csv"
PICTURE: Final = ROOT / "docs" / "benchmarks.svg"
REGION: Final = re.compile(r"(<!-- generated: results -->\n).*?(<!-- end -->)", re.DOTALL)
DESCRIBED: Final = ("machine", "PostgreSQL", "server settings", "Python", "Node.js worker")
NODE: Final = "Node tuned"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: a figure of gw, and of the peer it is compared with."""

    what: str
    benchmark: str
    figure: str
    peer: str = NODE
    named: str = "Node.js"
    """How the table calls the peer."""


LINES: Final = (
    Line("Run trivial jobs, one process", "drain", "jobs/s"),
    Line("Run trivial jobs, two processes", "drain-two", "jobs/s"),
    Line("Run trivial jobs, two processes", "python-peers", "jobs/s", "pgqueuer", "pgqueuer"),
    Line("Run trivial jobs, two processes", "python-peers", "jobs/s", "procrastinate", "procrastinate"),
    Line("Run jobs of 1,000 named queues", "queues-1000", "jobs/s"),
    Line("From add to start, median", "latency", "p50 ms"),
    Line("From add to start, 99th percentile", "latency", "p99 ms"),
    Line("Add jobs in bulk", "bulk-add", "jobs/s", "Node"),
    Line("Add jobs of named queues in bulk", "bulk-add-queued", "jobs/s", "Node"),
    Line("Idle fleet, server CPU of a job", "fleet", "server CPU ms/job"),
    Line("Start, find no job and end", "start", "ms", "Node defaults"),
    Line("Memory over a million jobs", "memory", "peak MiB"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, the picture and the data, or print how long each benchmark took."""
    given = parser().parse_args(arguments)
    runs = read_runs(given.results)
    if given.seconds:
        took = {name: seconds for _, results in runs.values() for name, seconds in progress.learned(results).items()}
        print(json.dumps(took, indent=2))
        return 0
    given.page.write_text(with_results(given.page.read_text("utf-8"), runs), "utf-8")
    given.picture.write_text(picture(runs.values()), "utf-8")
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
    machine = "; ".join(f"{name} {where[name]}" for name in DESCRIBED if name in where)
    return REGION.sub(lambda found: f"{found[1]}\n{table(runs.values())}\n\n{machine}.\n\n{found[2]}", page)


def table(runs: Iterable[Run]) -> str:
    """Return the table: figures of both sides, and how many times better gw is."""
    lines = [(line.what, *_cells(line, result), _bar(line, result).text) for line, result in _compared(runs)]
    header = ("Measurement", "gw", "Compared with", "gw is better")
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ("---", "--:", "--:", "--:"), *lines))


def picture(runs: Iterable[Run]) -> str:
    """Return the same ratios as bars."""
    bars = [_bar(line, result) for line, result in _compared(runs)]
    return chart(bars, "How many times better gw is, median and range of the rounds")


def _compared(runs: Iterable[Run]) -> Iterator[tuple[Line, BenchmarkResult]]:
    """Yield each line that was measured; of a benchmark in several runs, the one with the most rounds counts."""
    measured = sorted((result for _, results in runs for result in results), key=_rounds)
    results = {result.benchmark.name: result for result in measured}
    for line in LINES:
        result = results.get(line.benchmark)
        if result is not None and all(result.sides[side].median(line.figure) for side in (OURS, line.peer)):
            yield line, result


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


def _cells(line: Line, result: BenchmarkResult) -> tuple[str, str]:
    ours, theirs = (_shown(result.sides[side].median(line.figure), line.figure) for side in (OURS, line.peer))
    return ours, f"{line.named}: {theirs}"


def _bar(line: Line, result: BenchmarkResult) -> Bar:
    """Return how many times better gw is: of the medians, and in the worst and the best of the rounds."""
    ours, theirs = result.sides[OURS], result.sides[line.peer]
    rounds = [_better(line, *pair) for pair in zip(ours.values(line.figure), theirs.values(line.figure), strict=False)]
    ratio = _better(line, ours.median(line.figure) or 0.0, theirs.median(line.figure) or 0.0)
    label = line.what if line.named == "Node.js" else f"{line.what} ({line.named})"
    return Bar(label, ratio, min(rounds), max(rounds))


def _better(line: Line, ours: float, theirs: float) -> float:
    """Return a ratio above 1 when gw is better: of rates more is better, of all else less."""
    return ours / theirs if line.figure == "jobs/s" else theirs / ours


def _shown(value: float | None, figure: str) -> str:
    if value is None:
        return "not measured"
    unit = next((unit for unit in ("jobs/s", "MiB", "ms") if unit in figure), "")
    return f"{value:,.0f} {unit}".rstrip() if value >= 20 or value == int(value) else f"{value:.2g} {unit}".rstrip()


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.render_docs", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the files that --json wrote")
    parser.add_argument("--page", type=Path, default=PAGE, help="page whose table is replaced")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="SVG file to write")
    parser.add_argument("--data", type=Path, default=DATA, help="CSV file to write")
    parser.add_argument("--seconds", action="store_true", help="print the contents of bench/expected_seconds.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
