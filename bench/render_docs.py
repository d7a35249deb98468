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
from bench.benchmarks.features import WITHOUT
from bench.benchmarks.fleet import SERVER
from bench.chart import Bar, chart
from bench.harness import OURS, BenchmarkResult
from bench.measure import RATE

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "bench" / "results"
PAGE: Final = ROOT / "docs" / "benchmarks.md"
DATA: Final = ROOT / "docs" / "benchmarks.csv"
PICTURE: Final = ROOT / "docs" / "benchmarks.svg"
REGION: Final = re.compile(r"(<!-- generated: results -->\n).*?(<!-- end -->)", re.DOTALL)
DESCRIBED: Final = ("machine", "PostgreSQL", "server settings", "Python", "Node.js worker", "Rust worker")
NODE: Final = "Node tuned"
SIZES: Final = ("1 kB", "100 kB", "4 MB")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table: a figure of gw, and what it is compared with."""

    what: str
    benchmark: str
    figure: str
    peer: str = NODE
    named: str = "Node.js"
    """How the table calls the peer."""
    ours: str = OURS
    than: str | None = None
    """The figure of the peer, if it is another one."""

    def of_ours(self, result: BenchmarkResult) -> list[float]:
        """Return the values of our figure."""
        return _values(result, self.ours, self.figure)

    def of_peer(self, result: BenchmarkResult) -> list[float]:
        """Return the values that ours are compared with."""
        return _values(result, self.peer, self.than or self.figure)


def _values(result: BenchmarkResult, side: str, figure: str) -> list[float]:
    return result.sides[side].values(figure) if side in result.sides else []


def _beside(what: str, benchmark: str, figure: str, node: str = NODE) -> tuple[Line, Line]:
    """Return the lines of a benchmark that both other workers of the schema take part in."""
    return Line(what, benchmark, figure, node), Line(what, benchmark, figure, "Rust", "Rust")


LINES: Final = (
    *_beside("Run trivial jobs, one process", "drain", RATE),
    *_beside("Run trivial jobs, two processes", "drain-two", RATE),
    Line("Run trivial jobs, two processes", "python-peers", RATE, "pgqueuer", "pgqueuer"),
    Line("Run trivial jobs, two processes", "python-peers", RATE, "procrastinate", "procrastinate"),
    Line("Run jobs of 1,000 named queues", "queues-1000", RATE),
    *_beside("From add to start, median", "latency", "p50 ms"),
    *_beside("From add to start, 99th percentile", "latency", "p99 ms"),
    *_beside("Add jobs in bulk", "bulk-add", RATE, "Node"),
    *_beside("Add jobs of named queues in bulk", "bulk-add-queued", RATE, "Node"),
    Line("Idle fleet, from add to start, median", "fleet", "p50 ms"),
    Line("Idle fleet, from add to start, 99th percentile", "fleet", "p99 ms"),
    Line("Idle fleet, server CPU of a job", "fleet", SERVER),
    Line("Idle fleet, workers' CPU of a job", "fleet", "workers' CPU ms/job"),
    Line("Idle fleet, transactions of a job", "fleet", "transactions/job"),
    Line("Idle fleet beside scheduled jobs, server CPU of a job", "fleet-scheduled", SERVER),
    Line("Idle fleet beside scheduled jobs, workers' CPU of a job", "fleet-scheduled", "workers' CPU ms/job"),
    *_beside("100 idle workers, server CPU", "idle-many", "server CPU %"),
    *_beside("100 idle workers, their CPU", "idle-many", "workers' CPU %"),
    *_beside("100 idle workers, transactions", "idle-many", "transactions/s"),
    Line("Start, find no job and end", "start", "ms", "Node defaults"),
    Line("Add a job with `gw add`", "short-commands", "ms", "psycopg", "psycopg alone", ours="gw add"),
    *(Line(f"Run jobs with payloads of {size}", f"payload-{size.replace(' ', '')}", RATE) for size in SIZES),
    *(Line(f"Memory over jobs of {size}", f"payload-{size.replace(' ', '')}", "peak MiB") for size in SIZES),
    Line("Memory over a million jobs", "memory", "peak MiB"),
    Line("Run a job that waits for all others", "fan-in", RATE, "pg-boss", "pg-boss"),
    Line("Run a chain of jobs", "chain", RATE, "pg-boss", "pg-boss"),
)
"""gw beside other programs."""
COSTS: Final = (
    *(
        Line(what, benchmark, RATE, WITHOUT, "without")
        for what, benchmark in (
            ("Run jobs with history", "history"),
            ("Run jobs with statistics, the default", "statistics"),
            ("Run jobs below a limit", "limit"),
            ("Run jobs below a rate limit", "rate-limit"),
            ("Run jobs of one step each", "steps"),
            ("Add jobs in bulk with `unique_for`", "unique-for"),
            ("Add jobs in bulk with `expires_at`", "expires-at"),
        )
    ),
    *(
        Line(
            f"Claim 10 of {jobs} jobs, {share}",
            "backlog",
            f"{p} ms, {count:,}",
            OURS,
            "of 10,000",
            than=f"{p} ms, 10,000",
        )
        for p, share in (("p50", "median"), ("p99", "99th percentile"))
        for jobs, count in (("a million", 1_000_000), ("ten million", 10_000_000))
    ),
)
"""gw beside itself."""


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
    return REGION.sub(lambda found: f"{found[1]}\n{tables(runs.values())}\n\n{machine}.\n\n{found[2]}", page)


def tables(runs: Iterable[Run]) -> str:
    """Return the table beside other programs and, once something of it was measured, the table beside gw itself."""
    results = _results(runs)
    costs = _table(COSTS, results, "Ratio")
    return _table(LINES, results, "gw is better") + (f"\n\n{costs}" if costs else "")


def _table(lines: Sequence[Line], results: Mapping[str, BenchmarkResult], ratio: str) -> str:
    """Return figures of both sides and their ratio, or nothing if there are none."""
    rows = [(line.what, *_cells(line, result), _bar(line, result).text) for line, result in _compared(lines, results)]
    header = ("Measurement", "gw", "Compared with", ratio)
    cells = (header, ("---", "--:", "--:", "--:"), *rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells) if rows else ""


def picture(runs: Iterable[Run]) -> str:
    """Return the same ratios as bars."""
    bars = [_bar(line, result) for line, result in _compared(LINES, _results(runs))]
    return chart(bars, "How many times better gw is, median and range of the rounds")


def _results(runs: Iterable[Run]) -> Mapping[str, BenchmarkResult]:
    """Return the results by benchmark; of one in several runs, that with the most rounds counts."""
    measured = sorted((result for _, results in runs for result in results), key=_rounds)
    return {result.benchmark.name: result for result in measured}


def _compared(lines: Sequence[Line], results: Mapping[str, BenchmarkResult]) -> Iterator[tuple[Line, BenchmarkResult]]:
    """Yield each line of which both sides were measured."""
    for line in lines:
        result = results.get(line.benchmark)
        if result is not None and all(
            values and all(values) for values in (line.of_ours(result), line.of_peer(result))
        ):
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
    ours, theirs = (_shown(median(each), line.figure) for each in (line.of_ours(result), line.of_peer(result)))
    return ours, f"{line.named}: {theirs}"


def _bar(line: Line, result: BenchmarkResult) -> Bar:
    """Return how many times better gw is: of the medians, and in the worst and the best of the rounds."""
    ours, theirs = line.of_ours(result), line.of_peer(result)
    rounds = [_better(line, *pair) for pair in zip(ours, theirs, strict=False)]
    label = line.what if line.named == "Node.js" else f"{line.what} ({line.named})"
    return Bar(label, _better(line, median(ours), median(theirs)), min(rounds), max(rounds))


def _better(line: Line, ours: float, theirs: float) -> float:
    """Return a ratio above 1 when gw is better: of rates of jobs more is better, of all else less."""
    return ours / theirs if line.figure == RATE else theirs / ours


def _shown(value: float, figure: str) -> str:
    units = {"jobs/s": "jobs/s", "MiB": "MiB", "ms": "ms", "%": "%", "transactions/s": "/s"}
    unit = next((shown for unit, shown in units.items() if unit in figure), "")
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
