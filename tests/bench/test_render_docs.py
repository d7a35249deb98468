"""Figures are kept in a file that is complete at any time, and in the documentation."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import app, progress, render_docs
from bench.benchmarks import all_benchmarks
from bench.harness import Benchmark, BenchmarkResult, Goal, Measure, Measured, SideResult, WrongResultError, measure
from bench.measure import Bench
from bench.progress import Eta
from bench.report import as_json, from_json, table
from bench.scales import SCALES
from bench.server import Server


def giving(**values: float) -> Measure:
    return lambda: Measured(values, {"doubtful": "doubtful: it started slowly"})


def lying() -> Measured:
    raise WrongResultError("7 jobs ran twice")


def interrupted() -> Measured:
    raise KeyboardInterrupt


def a_benchmark(name: str = "a-benchmark", **sides: Measure) -> Benchmark:
    goals = [Goal(figure="ms", beside="node", at_most=0.5)]
    judged = [Goal(figure="ms", at_least=2, of=who) for who in sides if who == "node"]
    return Benchmark(name=name, title=f"The benchmark {name}", sides=sides, goals=[*goals, *judged])


def measured(benchmark: Benchmark, *, rounds: int = 2) -> BenchmarkResult:
    *_, result = measure([benchmark], rounds=rounds, say=lambda line: None)
    return result


def asked(**given: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"rounds": 2, "scale": "small", "json": None, **given})


def test_the_same_table_can_be_made_of_the_file() -> None:
    result = measured(a_benchmark(gw=giving(ms=1), node=giving(ms=3), rust=lying))

    where, results = from_json(json.loads(json.dumps(as_json({"machine": "ours"}, [result]))))

    assert where == {"machine": "ours"}
    assert table(results) == table([result])
    assert "ms of node at least 2: reached (3)" in table(results)


def test_the_figures_of_an_interrupted_run_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    benchmarks = [
        a_benchmark("one", gw=giving(ms=1)),
        a_benchmark("two", gw=giving(ms=2), node=interrupted),
        a_benchmark("three", gw=lying),
    ]
    where: dict[str, str] = {}

    app.measured(benchmarks, asked(json=file), where)

    document = json.loads(file.read_text())
    assert [benchmark["name"] for benchmark in document["benchmarks"]] == ["one", "two"]
    assert document["benchmarks"][1]["sides"]["gw"]["rounds"] == [{"ms": 2}]
    assert document["where"]["interrupted"] == "in the benchmark two"
    assert [*tmp_path.iterdir()] == [file]


def test_an_error_of_one_side_ends_no_other() -> None:
    def failing() -> Measured:
        raise KeyError("n")

    result = measured(a_benchmark(gw=failing, node=giving(ms=3)))

    assert result.sides["gw"].missing == "KeyError: 'n'"
    assert result.sides["node"].median("ms") == 3


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with one run: gw drains at 20 jobs/s, the tuned Node.js worker at 8."""
    sides: dict[str, Measure] = {"gw": lambda: Measured({"jobs/s": 20}), "Node tuned": lambda: Measured({"jobs/s": 8})}
    result = measured(Benchmark(name="drain", title="Drain", sides=sides))
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "one.json").write_text(json.dumps(as_json({"machine": "ours"}, [result])))
    return folder


def written(folder: Path) -> list[str]:
    """Return the options that name the files to write."""
    files = {"--page": "page.md", "--data": "data.csv", "--picture": "picture.svg"}
    return [word for option, name in files.items() for word in (option, str(folder / name))]


def test_the_picture_shows_rates_and_times_alike() -> None:
    sides = {
        "gw": [{"jobs/s": 30, "p50 ms": 1}, {"jobs/s": 24, "p50 ms": 1}],
        "Node tuned": [{"jobs/s": 10, "p50 ms": 2}, {"jobs/s": 10, "p50 ms": 4}],
    }
    document = {
        "name": "drain",
        "title": "",
        "goals": [],
        "sides": {
            who: {"rounds": rounds, "seconds": [], "notes": [], "not_measured": None, "wrong": None}
            for who, rounds in sides.items()
        },
    }
    runs = [from_json({"where": {}, "benchmarks": [document, {**document, "name": "latency"}]})]

    picture = render_docs.picture(runs)

    labels = [element.text for element in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert "2.70 x (2.40 - 3.00)" in labels
    assert "3.00 x (2.00 - 4.00)" in labels


def test_the_table_and_the_data_replace_the_previous_ones(results: Path, tmp_path: Path) -> None:
    page, data = tmp_path / "page.md", tmp_path / "data.csv"
    page.write_text("# A page\n\n<!-- generated: results -->\nOld.\n<!-- end -->\n\nMore.\n")

    for _ in range(2):
        assert render_docs.main(["--results", str(results), *written(tmp_path)]) == 0

    assert (
        "| Run trivial jobs, one process | 20 jobs/s | Node.js: 8 jobs/s | 2.50 x (2.50 - 2.50) |\n\nmachine ours."
        in page.read_text()
    )
    assert "Old." not in page.read_text()
    assert page.read_text().endswith("<!-- end -->\n\nMore.\n")
    assert data.read_text().splitlines()[1:] == [
        "one,drain,gw,jobs/s,20,20,20,2",
        "one,drain,Node tuned,jobs/s,8,8,8,2",
    ]


def test_a_page_without_the_region_is_rejected() -> None:
    with pytest.raises(SystemExit, match="no region"):
        render_docs.with_results("# A page\n", {})


def test_the_page_and_the_data_are_current(tmp_path: Path) -> None:
    page, data = tmp_path / "page.md", tmp_path / "data.csv"
    page.write_text(render_docs.PAGE.read_text())

    render_docs.main(written(tmp_path))

    assert page.read_text() == render_docs.PAGE.read_text(), "run: python -m bench.render_docs"
    assert data.read_text() == render_docs.DATA.read_text(), "run: python -m bench.render_docs"
    picture = (tmp_path / "picture.svg").read_text()
    assert picture == render_docs.PICTURE.read_text(), "run: python -m bench.render_docs"


def test_the_time_left_follows_what_the_machine_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = tmp_path / "expected_seconds.json"
    known.write_text(json.dumps({"small": {"one": 100.0, "two": 50.0}}))
    monkeypatch.setattr(progress, "KNOWN", known)
    one, two = a_benchmark("one", gw=giving(ms=1)), a_benchmark("two", gw=giving(ms=1), node=giving(ms=1))
    left = Eta([one, two], rounds=2, scale="small")
    assert str(left) == "about 7 min left"

    result = measured(one)
    result.sides["gw"].seconds = [200.0, 200.0]
    left.note([result])

    assert str(left) == "about 7 min left"
    assert progress.learned([result]) == {"one": 200.0}


def test_the_command_is_shown_without_the_database(capsys: pytest.CaptureFixture[str]) -> None:
    given = app.parser().parse_args(["--database", "postgres://me:secret@host", "--alone", "drain*", "--rounds", "5"])

    assert app.command_line(given) == "python -m bench --scale small --rounds 5 --alone 'drain*'"


def a_result(name: str, **rounds: list[dict[str, float]]) -> BenchmarkResult:
    sides = {who.replace("_", " "): SideResult(rounds=[*values]) for who, values in rounds.items()}
    return BenchmarkResult(Benchmark(name=name, title=name, sides={}), sides)


def test_a_peer_that_was_not_measured_has_no_line() -> None:
    drain = a_result("drain", gw=[{"jobs/s": 30}], Node_tuned=[{"jobs/s": 10}], Rust=[])

    shown = render_docs.tables([({}, [drain])])

    assert "Node.js: 10 jobs/s" in shown
    assert "Rust" not in shown


def test_the_cost_of_features_and_of_long_queues_is_a_table_of_its_own() -> None:
    drain = a_result("drain", gw=[{"jobs/s": 30}], Rust=[{"jobs/s": 10}])
    history = a_result("history", gw=[{"jobs/s": 40}, {"jobs/s": 60}], gw_without=[{"jobs/s": 100}, {"jobs/s": 100}])
    backlog = a_result("backlog", gw=[{"p50 ms, 10,000": 2, "p50 ms, 1,000,000": 4}])

    others, own = render_docs.tables([({}, [drain, history, backlog])]).split("\n\n")

    assert "| Rust: 10 jobs/s | 3.00 x (3.00 - 3.00) |" in others
    assert "| 50 jobs/s | without: 100 jobs/s | 0.50 x (0.40 - 0.60) |" in own
    assert "| Claim 10 of a million jobs, median | 4 ms | of 10,000: 2 ms | 0.50 x (0.50 - 0.50) |" in own


def test_every_line_names_a_benchmark_and_sides_that_exist() -> None:
    with Server() as server:
        sides = {each.name: each.sides for each in all_benchmarks(Bench(server, SCALES["full"]))}

    lines = (*render_docs.LINES, *render_docs.COSTS)
    assert [line for line in lines if not {line.ours, line.peer} <= sides.get(line.benchmark, {}).keys()] == []
