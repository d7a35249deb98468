"""Sides take turns, missing measurements are reported, and a wrong result has no figure."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from bench.harness import (
    Benchmark,
    BenchmarkResult,
    Goal,
    Measure,
    Measured,
    NotMeasuredError,
    WrongResultError,
    measure,
)
from bench.measure import check_numbers
from bench.report import as_json, table


def a_benchmark(*goals: Goal, **sides: Measure) -> Benchmark:
    return Benchmark(name="a-benchmark", title="A benchmark", sides=sides, goals=goals)


def giving(*rates: float) -> Measure:
    following = iter(rates)
    return lambda: Measured({"jobs/s": next(following)})


def raising(error: Exception) -> Measure:
    def side() -> Measured:
        raise error

    return side


def measured(benchmark: Benchmark, *, rounds: int = 3) -> BenchmarkResult:
    *_, result = measure([benchmark], rounds=rounds, say=lambda line: None)
    return result


def test_sides_take_turns() -> None:
    turns: list[str] = []

    def side(name: str) -> Callable[[], Measured]:
        return lambda: turns.append(name) or Measured({})  # type: ignore[func-returns-value]

    measured(a_benchmark(gw=side("gw"), node=side("node")), rounds=2)

    assert turns == ["gw", "node", "gw", "node"]


def test_medians_and_ratios_stand_in_the_table() -> None:
    result = measured(a_benchmark(gw=giving(30, 10, 20), node=giving(5, 4, 6)))

    assert result.ratio("jobs/s", "node") == 4
    (ours, theirs) = [line for line in table([result]).splitlines() if "jobs/s" in line]
    assert [cell.strip() for cell in ours.split("|")[1:-1]] == ["A benchmark", "gw", "jobs/s", "20", "10 - 30", ""]
    assert [cell.strip() for cell in theirs.split("|")[1:-1]] == ["", "node", "jobs/s", "5", "4 - 6", "4.00 x"]


def test_a_missing_peer_is_said() -> None:
    result = measured(a_benchmark(gw=giving(1, 2, 3), node=raising(NotMeasuredError("npm is not installed"))))

    assert "not measured" in table([result])
    assert "- A benchmark, node: npm is not installed" in table([result])
    assert result.ratio("jobs/s", "node") is None


def test_a_side_whose_server_is_gone_does_not_end_the_others() -> None:
    result = measured(a_benchmark(gw=giving(1, 2, 3), node=raising(psycopg.OperationalError("connection\nrefused"))))

    assert result.sides["gw"].median("jobs/s") == 2
    assert "- A benchmark, node: OperationalError: connection refused" in table([result])


def test_rounds_that_say_the_same_say_it_once() -> None:
    following = iter(["3 of 9 jobs done", "4 of 9 jobs done"])
    result = measured(a_benchmark(gw=lambda: Measured({"jobs/s": 1}, {"stopped": next(following)})), rounds=2)

    assert [line for line in table([result]).splitlines() if "jobs done" in line] == [
        "- A benchmark, gw: 4 of 9 jobs done"
    ]


def test_the_figures_of_a_wrong_result_are_not_shown() -> None:
    lying = iter([Measured({"jobs/s": 99.0})])

    def side() -> Measured:
        for figures in lying:
            return figures
        raise WrongResultError("7 jobs ran twice")

    result = measured(a_benchmark(gw=giving(1, 2), node=side), rounds=2)

    assert "- A benchmark, node: 7 jobs ran twice" in table([result])
    assert "99" not in table([result])
    assert as_json({}, [result])["benchmarks"][0]["sides"]["node"]["medians"] == {}


@pytest.mark.parametrize(
    ("goal", "verdict"),
    [
        pytest.param(Goal(figure="jobs/s", beside="node", at_least=2), "at least 2 x node: reached (2)", id="ratio"),
        pytest.param(Goal(figure="jobs/s", beside="node", at_least=3), "NOT REACHED (2)", id="ratio-missed"),
        pytest.param(Goal(figure="jobs/s", at_most=9), "at most 9: NOT REACHED (10)", id="plain-missed"),
        pytest.param(Goal(figure="jobs/s", beside="rust", at_least=1), "not measured", id="peer-missing"),
    ],
)
def test_goals_are_judged_by_the_medians(goal: Goal, verdict: str) -> None:
    result = measured(a_benchmark(goal, gw=giving(10), node=giving(5)), rounds=1)

    assert verdict in table([result])


def ran(folder: Path, name: str, *numbers: int) -> None:
    (folder / f"ran-{name}").write_bytes(array("I", numbers).tobytes())


def test_jobs_spread_over_two_processes_add_up(tmp_path: Path) -> None:
    ran(tmp_path, "1", 0, 3)
    ran(tmp_path, "2", 2, 1)

    check_numbers(tmp_path, done=4, of=4)


@pytest.mark.parametrize(
    ("numbers", "complaint"),
    [
        pytest.param((0, 1, 1), "1 jobs ran twice", id="twice"),
        pytest.param((0, 1), "3 jobs left the queue, 2 different ones", id="lost"),
        pytest.param((0, 1, 9), "3 jobs left the queue", id="another-job"),
    ],
)
def test_a_job_that_did_not_run_exactly_once_is_found(tmp_path: Path, numbers: tuple[int, ...], complaint: str) -> None:
    ran(tmp_path, "1", *numbers)

    with pytest.raises(WrongResultError, match=complaint):
        check_numbers(tmp_path, done=3, of=3)


def test_a_worker_that_was_stopped_may_have_run_more_than_it_settled(tmp_path: Path) -> None:
    ran(tmp_path, "1", 0, 1, 2)

    assert check_numbers(tmp_path, done=2, of=3, some_unsettled=True) == 1
