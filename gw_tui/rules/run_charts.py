"""The statistics that workers record, as the values of charts: one column is one step, and None is a gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from gw_core.front_ends import counted
from gw_core.operations import RunSeries, RunStatistics
from gw_tui.rules.chart_series import LENGTH
from gw_tui.text import formatting

HOUR: Final = timedelta(hours=1)
MINUTE: Final = timedelta(minutes=1)
FULL_SECOND: Final = timedelta(seconds=1)


def per_second(count: Callable[[RunStatistics], int], history: RunSeries) -> Sequence[float | None]:
    """Return the rate per second of each of the last sixty complete steps."""
    return _columns(history, lambda runs: count(runs) / history.step.total_seconds())


def done(history: RunSeries) -> Sequence[float | None]:
    """Return the completed jobs per second."""
    return per_second(lambda runs: runs.completed, history)


def failures(history: RunSeries) -> Sequence[float | None]:
    """Return the failed attempts per second."""
    return per_second(lambda runs: runs.failed, history)


def slow_runs(history: RunSeries) -> Sequence[float | None]:
    """Return the 95th percentile of run times in seconds; a step in which nothing ended is a gap."""
    return _columns(history, lambda runs: _seconds(runs.percentile(0.95)))


def _columns(history: RunSeries, value: Callable[[RunStatistics], float | None]) -> Sequence[float | None]:
    seconds = history.step.total_seconds()
    known = {int(point.at.timestamp() // seconds): value(point.runs) for point in history.points}
    last = int(history.at.timestamp() // seconds)
    return [known.get(number) for number in range(last - LENGTH, last)]


def _seconds(found: timedelta | None) -> float | None:
    return None if found is None else found.total_seconds()


def run_time(seconds: float) -> str:
    """Return a run time: `4ms`, `1.2s`, `9m02s`."""
    value = timedelta(seconds=seconds)
    if value >= FULL_SECOND:
        return formatting.duration(value)
    milliseconds = seconds * 1_000
    return f"{milliseconds:.0f}ms" if milliseconds >= 10 or not milliseconds else f"{milliseconds:.1f}ms"


def summary(runs: RunStatistics) -> str:
    """Return what ended, in words."""
    if not runs.ended:
        return "nothing ended"
    parts = [f"{counted(runs.ended, 'attempt')} ended", f"{_share(runs.failed, runs.ended)} failed"]
    for share, name in ((0.5, "p50"), (0.95, "p95")):
        parts.append(f"{name} {run_time(_seconds(runs.percentile(share)) or 0.0)}")
    if (wait := runs.mean_wait) is not None:
        parts.append(f"mean wait {run_time(wait.total_seconds())}")
    return " · ".join(parts)


def _share(part: int, whole: int) -> str:
    percent = 100 * part / whole
    return f"{percent:.0f}%" if percent >= 1 or not part else "<1%"
