"""The table of conditions: parser, help, completion, evaluator and SQL are derived from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final

import msgspec

from gw_core.domain.job.job_state import JobState
from gw_core.domain.reports.query_results import FoundJob
from gw_core.selection.kinds import Containing, Kind, Names, Number, Payload, References, StartTime, State, Time

ALL_STATES: Final = frozenset(JobState)
RUNNING: Final = frozenset({JobState.RUNNING})


class Cost(IntEnum):
    """How much PostgreSQL has to read to find the jobs."""

    INDEX = 0
    """An index leads to them."""
    WINDOW = 1
    """Jobs are read in chunks; only small columns are compared."""
    SCAN = 2
    """Long texts of many jobs are read; the search may take a while."""


class Term(msgspec.Struct, frozen=True):
    """One condition: its name, how its values are read and compared, where they stand, and what it costs."""

    name: str
    kind: Kind
    column: str
    """The SQL expression that is compared."""
    value_of: Callable[[FoundJob], Any]
    """The same value of a job that was read."""
    cost: Cost
    help: str
    example: str
    states: frozenset[JobState] = ALL_STATES
    """The states a job that meets the condition can be in."""


TERMS: Final[Mapping[str, Term]] = {
    term.name: term
    for term in (
        Term("state", State(), "", lambda found: found.state, Cost.INDEX, "state of the job", "state:failed"),
        Term("id", Number(1, 2**63 - 1, "the id of a job; ids are whole numbers from 1"), "jobs.id",
             lambda found: found.job.id, Cost.INDEX, "job id", "id:9001,9002"),
        Term("job_key", Names(), "jobs.key", lambda found: found.job.job_key, Cost.INDEX, "job key",
             "job_key:welcome-42"),
        Term("task", References(of="tasks"), "jobs.task_id", lambda found: found.job.task, Cost.WINDOW,
             "task", "task:send*,mail"),
        Term("queue", References(of="queues"), "jobs.job_queue_id", lambda found: found.job.queue_name, Cost.WINDOW,
             "named queue", "queue:reports"),
        Term("worker", Names(), "jobs.locked_by", lambda found: found.job.locked_by, Cost.WINDOW,
             "worker that locks it", "worker:gw-web-1", states=RUNNING),
        Term("flag", Names(is_set=True), "jobs.flags", lambda found: found.job.flags, Cost.WINDOW,
             "a flag set on it", "flag:big"),
        Term("priority", Number(-999_999_999, 999_999_999), "jobs.priority", lambda found: found.job.priority,
             Cost.WINDOW, "priority; a number or a range", "priority:<0"),
        Term("attempts", Number(0, 999_999_999), "jobs.attempts", lambda found: found.job.attempts, Cost.WINDOW,
             "attempts so far; a number or a range", "attempts:>3"),
        Term("run_at", Time(), "jobs.run_at", lambda found: found.job._run_at, Cost.WINDOW,
             "when it may run", "run_at:<-1h"),
        Term("started_at", StartTime(), "jobs.locked_at", lambda found: found.job._started, Cost.WINDOW,
             "when its running attempt started", "started_at:<-10m", states=RUNNING),
        Term("locked_at", Time(), "jobs.locked_at", lambda found: found.job._locked_at, Cost.WINDOW,
             "when it was locked, or its lock renewed", "locked_at:<-4h", states=RUNNING),
        Term("created_at", Time(), "jobs.created_at", lambda found: found.job._created_at, Cost.WINDOW,
             "when it was added", "created_at:-1d..now"),
        Term("error", Containing(), "jobs.last_error", lambda found: found.job.last_error, Cost.SCAN,
             "text in its last error", 'error:"timed out"'),
        Term("payload", Payload(), "jobs.payload", lambda found: found.job.payload_json, Cost.SCAN,
             "value in its payload, or text anywhere in it", "payload.user.id:42"),
    )
}  # fmt: skip
"""The conditions, in the order in which help and completion show them."""

SHORT_FORMS: Final[Mapping[str, str]] = {"prio": "priority"}
PAYLOAD: Final = TERMS["payload"]
