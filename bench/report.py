"""Figures as a table for people, which is Markdown, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Final

from bench.harness import Benchmark, BenchmarkResult, Goal, Measured, NotMeasuredError, SideResult

HEADINGS: Final = ("what", "who", "figure", "median", "min - max", "ours / theirs")
ALIGNED_RIGHT: Final = frozenset({"median", "min - max", "ours / theirs"})


def table(results: Iterable[BenchmarkResult]) -> str:
    """Return one table of all benchmarks, then the goals and the notes."""
    results = list(results)
    lines = [line for result in results for line in _lines(result)]
    parts = [_padded([HEADINGS, *lines])]
    if goals := [f"- {_goal(result, goal)}" for result in results for goal in result.benchmark.goals]:
        parts.append("Goals:\n\n" + "\n".join(goals))
    if notes := [f"- {note}" for result in results for note in _notes(result)]:
        parts.append("Notes:\n\n" + "\n".join(notes))
    return "\n\n".join(parts)


def description(where: Mapping[str, str]) -> str:
    """Return where the figures come from, as a list."""
    return "\n".join(f"- {name}: {value}" for name, value in where.items())


def as_json(where: Mapping[str, str], results: Iterable[BenchmarkResult]) -> dict[str, Any]:
    """Return everything: every repetition, the medians, the goals."""
    return {"where": dict(where), "benchmarks": [_benchmark_as_json(result) for result in results]}


def from_json(document: Mapping[str, Any]) -> tuple[dict[str, str], list[BenchmarkResult]]:
    """Return what `as_json` was made of, but for the means to measure it again."""
    return dict(document["where"]), [_benchmark_from_json(benchmark) for benchmark in document["benchmarks"]]


# -- the table --------------------------------------------------------------------------------------------------------


def _lines(result: BenchmarkResult) -> Iterable[Sequence[str]]:
    what = result.benchmark.title
    for position, (who, side) in enumerate(result.sides.items()):
        if reason := _without_figures(side):
            yield what, who, reason, "", "", ""
            what = ""
        for figure in side.figures():
            ratio = result.ratio(figure, who) if position else None
            yield what, who, figure, _number(side.median(figure)), _spread(side, figure), _ratio(ratio)
            what = ""


def _without_figures(side: SideResult) -> str | None:
    if side.wrong is not None:
        return "WRONG RESULT"
    return "not measured" if side.missing is not None and not side.rounds else None


def _spread(side: SideResult, figure: str) -> str:
    values = side.values(figure)
    return f"{_number(min(values))} - {_number(max(values))}" if len(values) > 1 else ""


def _number(value: float | None) -> str:
    if value is None:
        return ""
    # Three digits that mean something, and no more than the spread allows.
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f} x" if value >= 100 else f"{value:.2f} x"


def _padded(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    right = [heading in ALIGNED_RIGHT for heading in HEADINGS]

    def joined(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    rule = joined("-" * (width - 1) + (":" if is_right else "-") for width, is_right in zip(widths, right, strict=True))
    texts = [
        joined(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(line, widths, right, strict=True)
        )
        for line in lines
    ]
    return "\n".join([texts[0], rule, *texts[1:]])


# -- goals and notes --------------------------------------------------------------------------------------------------


def _goal(result: BenchmarkResult, goal: Goal) -> str:
    value, reached = result.reached(goal)
    bound = f"at least {_number(goal.at_least)}" if goal.at_least is not None else f"at most {_number(goal.at_most)}"
    wanted = bound if goal.beside is None else f"{bound} x {goal.beside}"
    verdict = "not measured" if value is None else f"{'reached' if reached else 'NOT REACHED'} ({_number(value)})"
    whose = "" if goal.of is None else f" of {goal.of}"
    return f"{result.benchmark.title}, {goal.figure}{whose} {wanted}: {verdict}"


def _notes(result: BenchmarkResult) -> Iterable[str]:
    for who, side in result.sides.items():
        for text in (side.missing, side.wrong, *side.notes.values()):
            if text is not None:
                yield f"{result.benchmark.title}, {who}: {text}"


# -- JSON -------------------------------------------------------------------------------------------------------------


def _benchmark_as_json(result: BenchmarkResult) -> dict[str, Any]:
    return {
        "name": result.benchmark.name,
        "title": result.benchmark.title,
        "sides": {who: _side_as_json(side) for who, side in result.sides.items()},
        "goals": [_goal_as_json(result, goal) for goal in result.benchmark.goals],
    }


def _side_as_json(side: SideResult) -> dict[str, Any]:
    return {
        "rounds": side.rounds,
        "seconds": [round(each, 1) for each in side.seconds],
        "medians": {figure: side.median(figure) for figure in side.figures()},
        "not_measured": side.missing,
        "wrong": side.wrong,
        "notes": list(side.notes.values()),
    }


def _goal_as_json(result: BenchmarkResult, goal: Goal) -> dict[str, Any]:
    value, reached = result.reached(goal)
    return {**asdict(goal), "value": value, "reached": reached}


def _benchmark_from_json(benchmark: Mapping[str, Any]) -> BenchmarkResult:
    goals = [Goal(**{each.name: goal[each.name] for each in fields(Goal)}) for goal in benchmark["goals"]]
    sides = {who: _side_from_json(side) for who, side in benchmark["sides"].items()}
    return BenchmarkResult(
        Benchmark(name=benchmark["name"], title=benchmark["title"], sides=dict.fromkeys(sides, _gone), goals=goals),
        sides,
    )


def _side_from_json(side: Mapping[str, Any]) -> SideResult:
    notes = {str(place): note for place, note in enumerate(side["notes"])}
    return SideResult(side["rounds"], side["seconds"], notes, side["not_measured"], side["wrong"])


def _gone() -> Measured:
    raise NotMeasuredError("it was measured elsewhere")
