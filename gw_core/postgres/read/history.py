"""History: what became of jobs that have ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gw_core.domain.durations import Duration, as_duration
from gw_core.domain.job.history import EndedAttempt, HistoryState, JobEnd
from gw_core.domain.job.job import listed_ids
from gw_core.domain.reports.query_results import HistoryStatus, row_count
from gw_core.postgres.connection.connections import ConnectionSource
from gw_core.postgres.connection.deadlines import ANSWER_GRACE, ending_within
from gw_core.postgres.connection.row_mapping import optional_timestamp
from gw_core.postgres.connection.statement_steps import Steps
from gw_core.postgres.read.read_only import Rows, read
from gw_core.postgres.read.selection_names import values_of
from gw_core.postgres.road.add_calls import Call
from gw_core.selection.history_terms import HISTORY_TERMS
from gw_core.selection.kinds import Resolved
from gw_core.selection.parser import parse
from gw_core.selection.selection import EVERY_ROW, Fragment, Selection

SEARCH_TIMEOUT: Final = timedelta(seconds=5)


def read_history(
    connections: ConnectionSource,
    schema: str,
    name: str,
    values: Mapping[str, Any],
    *,
    timeout: Duration = SEARCH_TIMEOUT,
    fragment: Fragment = EVERY_ROW,
) -> Rows:
    """Run a query about jobs that have ended, for which `fragment` chooses the rows."""
    call = Call(name, {**values, **fragment.values}, {"SELECTION": fragment.text})
    timeout = as_duration("timeout", timeout)
    with ending_within(timeout + ANSWER_GRACE):
        return read(connections, schema, [call], timeout=timeout)[0]


def chosen(connections: ConnectionSource, schema: str, which: str | int | Sequence[int]) -> Fragment:
    """Return the condition for a selection, or for ids of jobs."""
    selection = parse(which, HISTORY_TERMS) if isinstance(which, str) else _of_ids(which)
    now = datetime.now(UTC)
    if selection.is_relative:
        now = read_history(connections, schema, "selection_names", values_of(selection, schema))[0][0]
    return selection.sql(Resolved(now=now))


def end_of(connections: ConnectionSource, schema: str, job_id: int) -> JobEnd:
    """Return what is known of how a job ended, in the queue and in history."""
    [row] = read_history(connections, schema, "job_end", {"job_id": job_id, "schema": schema})
    return job_end(row)


def status_of(connections: ConnectionSource, schema: str) -> HistoryStatus:
    """Return what history holds."""
    [row] = read_history(connections, schema, "history_status", {"schema": schema})
    return history_status(row)


def attempts_of(job_id: int) -> Steps[tuple[EndedAttempt, ...]]:
    """Return the ended attempts of one job, the first one first."""
    return tuple(map(attempt_of, (yield Call("job_history", {"job_id": job_id}))))


def job_end(row: Sequence[Any]) -> JobEnd:
    """Return the answer of `job_end.sql`."""
    is_queued, has_failed, attempts, error, is_known, *last = row
    attempt = None if last[0] is None else attempt_of(last)
    return JobEnd(is_queued, has_failed, attempts, error, is_known, attempt)


def history_status(row: Sequence[Any]) -> HistoryStatus:
    """Return the answer of `history_status.sql`."""
    counted, estimate, *counts, latest, arguments, has_default = row
    seconds = None if arguments is None else float(bytes(arguments).rstrip(b"\0"))
    values = [*counts, optional_timestamp(latest), None if seconds is None else timedelta(seconds=seconds), has_default]
    return HistoryStatus(row_count(counted, estimate), *values)


def _of_ids(which: int | Sequence[int]) -> Selection:
    return parse(f"id:{','.join(map(str, listed_ids(which)))}", HISTORY_TERMS)


def attempt_of(row: Sequence[Any]) -> EndedAttempt:
    """Return the attempt of a row of `list_history.sql`."""
    job_id, attempt, max_attempts, task, queue_name, key, state, *others = row
    others[3:7] = map(optional_timestamp, others[3:7])
    return EndedAttempt(job_id, attempt, max_attempts, task, queue_name, key, HistoryState(state), *others)
