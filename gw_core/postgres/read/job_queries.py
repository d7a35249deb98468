"""Read-only queries about jobs, queues and tasks, each with a timeout."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from math import inf
from operator import attrgetter
from time import monotonic
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gw_core.domain.durations import Duration, as_duration
from gw_core.domain.errors import InvalidInputError, PermissionDeniedError, SchemaMissingError
from gw_core.domain.job.group import WaitingGroup, waiting_of
from gw_core.domain.job.job import Job, check_one_named, listed_ids, timestamp
from gw_core.domain.job.job_state import LATER, UNCLAIMED, JobState
from gw_core.domain.reports.failures import LATELY, RecordedFailures
from gw_core.domain.reports.job_status import JobFacts, reasons, retry_schedule
from gw_core.domain.reports.query_results import (
    Count,
    Counts,
    FoundJob,
    JobPage,
    JobReport,
    PageCursor,
    Quality,
    QueueCounts,
    QueueReport,
    QueueSize,
    TaskActivity,
    TaskReport,
    projected,
)
from gw_core.domain.reports.table_sample import TableSample
from gw_core.domain.rules.pause import Pause, PauseKind
from gw_core.domain.rules.sweep_rules import RecoverySettings, WorkerInfo
from gw_core.domain.rules.task_limit import TaskLimit
from gw_core.postgres.connection.connections import ConnectionSource
from gw_core.postgres.connection.deadlines import ANSWER_GRACE, ending_within
from gw_core.postgres.connection.row_mapping import RUST_WORKERS, heartbeat
from gw_core.postgres.connection.statements import quoted
from gw_core.postgres.read.history import end_of
from gw_core.postgres.read.read_only import Rows, read
from gw_core.postgres.read.selection_names import resolved, values_of
from gw_core.postgres.road.add_calls import Call
from gw_core.postgres.road.limits import limit_of
from gw_core.postgres.road.pauses import pause_of
from gw_core.selection.kinds import Resolved
from gw_core.selection.selection import EVERY_ROW, Fragment, Selection

GENERIC_PLANS: Final = frozenset(
    {
        "heartbeat_list",
        "find_jobs",
        "schema_objects",
        "queue_of_job",
        "queue_list",
        "queue_starts",
        "pause_list",
        "limit_list",
        "task_list",
        "job_page_by_state",
        "snapshot_priorities",
        "stats_table",
    }
)
"""Statements with a generic plan: the same index serves all values."""

MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)

SEARCH_TIMEOUT: Final = timedelta(milliseconds=120)
"""How long a search for jobs takes by default."""

STATEMENT_TIMEOUT: Final = timedelta(seconds=5)
EXACT_TIMEOUT: Final = timedelta(minutes=5)
COUNTING_TIMEOUT: Final = timedelta(seconds=2)

FIRST_CHUNK: Final = 1_000
MAX_CHUNK: Final = 100_000
"""How many jobs one statement of a search reads."""

LAST_ID: Final = "9223372036854775807"

MAX_LOCKED: Final = 10_000
"""Up to this many locked jobs, each page of them reads all; if there are more, the table is scanned."""

MAX_NEXT: Final = 1_000
"""How many waiting jobs are listed in the order in which they will run. Behind them, equal jobs have no cursor."""

MAX_LATER: Final = 300
"""How many jobs for later are listed by state: 1,000 of them read 4,200 blocks, and take 20 ms on a busy server."""

FRUITFUL: Final = 10
"""A chunk does not count towards the timeout if at least one in this many of its jobs matches."""

MIN_SECONDS_LEFT: Final = 0.02
"""The time assumed for the next chunk, at least."""

ROWS_PER_READ: Final = 1_000

MAX_UNCLAIMED: Final = 1_000
"""How far the jobs of one queue are counted."""

BACKLOG_LIMIT: Final = 30_000
MAX_PRIORITIES: Final = 100
MAX_QUEUE_PRIORITIES: Final = 50
"""How many priorities of one queue are probed for its next job."""

NEWEST_FIRST: Final = {"SIDE": "<", "ORDER": "desc", "LAST": "min"}
"""The variables of job_page_by_id.sql in the other direction."""

OF_QUEUE: Final = {"AMONG": "and jobs.job_queue_id = %(queue_id)s::int"}
"""The variables of job_page_next.sql for one queue."""

QUEUE_INDEX: Final = "jobs_gw_queue_heads_index"
RENEWED_LOCKS: Final = "_private_gw_renewed_locks"
"""Objects that a schema of others does not have."""

MAX_TASKS: Final = 10_000
MAX_WORKERS: Final = 10_000


class _Wanted(msgspec.Struct, frozen=True):
    """A selection in this database: as SQL, and what leads to its jobs."""

    selection: Selection
    objects: frozenset[str]
    """Which of gw's own objects the schema has."""
    fragment: Fragment
    queue_id: int | None
    """The one queue its jobs are in."""

    @property
    def states(self) -> frozenset[JobState]:
        """The states its jobs can be in."""
        return self.selection.states

    @property
    def is_waiting(self) -> bool:
        """True when all its jobs wait, so that they have an order."""
        return self.states <= UNCLAIMED

    @property
    def is_failed(self) -> bool:
        """True when all its jobs have failed permanently, and an index has them."""
        return self.states == {JobState.FAILED} and "jobs_gw_failed_index" in self.objects

    @property
    def is_next(self) -> bool:
        """True when an index gives its jobs in the order in which they will run: all that wait, or those of a queue."""
        names = [each.term.name for each in self.selection.conditions if each.term.name != "state"]
        is_of_queue = names == ["queue"] and self.queue_id is not None and QUEUE_INDEX in self.objects
        return self.is_waiting and self.states & LATER in (set(), LATER) and (not names or is_of_queue)

    def has_order(self, mark: PageCursor) -> bool:
        """Return whether the schema has the indexes for the order of a cursor."""
        return mark.order != "state" or {"jobs_gw_locked_index", "jobs_gw_failed_index"} <= self.objects

    @property
    def values(self) -> dict[str, Any]:
        """The values of its statements."""
        due = JobState.READY in self.states
        later = bool(self.states - {JobState.READY})
        return {**self.fragment.values, "queue_id": self.queue_id, "with_due": due, "with_later": later}


class _Chunk(msgspec.Struct, frozen=True):
    """The matches of one statement, in order; where the next chunk starts, if there is one; and the last match."""

    scanned: int
    ids: Sequence[int]
    end: PageCursor | None
    last: PageCursor | None


class JobQueries:
    """Queries about one queue; thread-safe. Raises gw's errors, not the driver's."""

    def __init__(self, connections: ConnectionSource, schema: str) -> None:
        self._connections = connections
        self._schema = schema
        self._sampled = TableSample()
        # Guards _sampled. Reads of two threads may overlap, and both count.
        self._sampling = threading.Lock()

    # -- pages of jobs ---------------------------------------------------------------------------------------------

    def list_jobs(
        self,
        wanted: Selection,
        *,
        after: PageCursor | str | int | None = None,
        limit: int = 50,
        with_payload: bool = False,
        timeout: Duration = SEARCH_TIMEOUT,
    ) -> JobPage:
        """Return the jobs that match, up to `limit`, and where to go on; payloads only when asked for.

        Jobs come in order of their ids. The waiting jobs, or those of one queue, come in the order in which they will
        run: the next thousand of them, and by id for a larger `limit` or `after` an id. Failed ones come with the
        latest failure first, if gw's index of them is installed. A list that begins `after` `PageCursor.newest()` has
        the newest jobs first. One of all jobs `after` `PageCursor.by_state()` has up to a thousand of each state, those
        that run first, and the next 300 for later last, if gw's indexes are installed. No index serves most other
        conditions: the search ends after `timeout`, and the page shows how far it came.
        """
        if limit < 1:
            raise InvalidInputError(f"a page of {limit} jobs is empty; ask for at least 1")
        timeout = as_duration("timeout", timeout)
        mark = after if after is None or isinstance(after, PageCursor) else PageCursor.parse(str(after))
        objects, database = self._database(wanted)
        if wanted.cannot_match(database):
            return JobPage()
        asked = _Wanted(wanted, objects, wanted.sql(database), wanted.only_queue(database))
        beginning = _beginning(asked, limit) if mark is None or not asked.has_order(mark) else mark
        page = (
            self._named(asked, beginning, limit)
            or self._held(asked, beginning, limit)
            or self._next(asked, beginning, limit)
            or self._by_state(asked, beginning, limit)
            or self._search(asked, beginning, limit, timeout)
        )
        return replace(self._filled(page, wanted, with_payload), order=beginning.order)

    def _named(self, wanted: _Wanted, mark: PageCursor, limit: int) -> tuple[list[int], JobPage] | None:
        """Find jobs by their ids or keys, where nothing has to be searched."""
        if not wanted.selection.is_by_name:
            return None
        values = {**wanted.values, "after_id": int(_of_order(mark, "id").place[0]), "limit": limit + 1}
        ids = [row[0] for row in self._rows("job_page_named", values, wanted.fragment)]
        after = PageCursor.after_id(ids[limit - 1]) if len(ids) > limit else None
        return ids[:limit], JobPage(after=after, scanned=len(ids), is_full=len(ids) >= limit)

    def _held(self, wanted: _Wanted, mark: PageCursor, limit: int) -> tuple[list[int], JobPage] | None:
        """Find jobs among those that are locked; None if others are selected, or too many are locked."""
        is_meant = wanted.states == {JobState.RUNNING} and "jobs_gw_locked_index" in wanted.objects
        if not is_meant or mark.order == "newest":
            return None
        values = {**wanted.values, "after_id": int(_of_order(mark, "id").place[0])}
        rows = self._rows("job_page_of_locked", {**values, "most": MAX_LOCKED + 1, "limit": limit}, wanted.fragment)
        ((scanned, ids),) = rows
        if scanned > MAX_LOCKED:
            return None
        is_full = len(ids) == limit
        after = PageCursor.after_id(ids[-1]) if is_full else None
        return ids, JobPage(after=after, scanned=scanned, is_full=is_full)

    def _next(self, wanted: _Wanted, mark: PageCursor, limit: int) -> tuple[list[int], JobPage] | None:
        """Find the waiting jobs that will run next; None if others are selected, or another order is."""
        if mark.order != "turn" or not wanted.is_next:
            return None
        skip = int(mark.place[0])
        values = {**wanted.values, "skip": skip, "limit": min(limit, max(0, MAX_NEXT - skip))}
        names = {} if wanted.queue_id is None else OF_QUEUE
        ids = [row[0] for row in self._rows("job_page_next", values, names=names)]
        is_full = bool(ids) and len(ids) == values["limit"]
        after = PageCursor.next_jobs(skip + len(ids)) if is_full and skip + len(ids) < MAX_NEXT else None
        return ids, JobPage(after=after, scanned=len(ids), is_full=is_full)

    def _by_state(self, wanted: _Wanted, mark: PageCursor, limit: int) -> tuple[list[int], JobPage] | None:
        """Find all jobs by state, those that run first; None if another order or only some jobs are selected."""
        if mark.order != "state" or wanted.selection.conditions:
            return None
        skip = int(mark.place[0])
        values = {"skip": skip, "limit": limit, "end": skip + limit, "levels": MAX_PRIORITIES}
        limits = {"most": MAX_NEXT, "later": MAX_LATER}
        ids = [row[0] for row in self._rows("job_page_by_state", {**values, **limits})]
        is_full = len(ids) == limit
        after = PageCursor.by_state(skip + limit) if is_full else None
        return ids, JobPage(after=after, scanned=len(ids), is_full=is_full)

    def _search(self, wanted: _Wanted, mark: PageCursor, limit: int, timeout: timedelta) -> tuple[list[int], JobPage]:
        """Read chunks of the table, each as long as the time left allows.

        Chunks with many matches do not count towards the timeout: a caller that asks for many jobs waits for them.
        """
        ids: list[int] = []
        scanned, chunk_size, left = 0, _first_chunk_size(wanted, mark, limit), timeout.total_seconds()
        while True:
            began = monotonic()
            chunk = self._chunk(wanted, mark, chunk_size=chunk_size, limit=limit - len(ids))
            took = monotonic() - began
            scanned += chunk.scanned
            ids += chunk.ids
            if len(ids) >= limit:
                return ids, JobPage(after=chunk.last, scanned=scanned, is_full=True)
            if chunk.end is None:
                return ids, JobPage(scanned=scanned)
            if len(chunk.ids) * FRUITFUL < chunk.scanned:
                left -= took
                if left <= 0:
                    return ids, JobPage(after=chunk.end, scanned=scanned)
            mark, chunk_size = chunk.end, _next_chunk_size(chunk_size, took=took, left=max(left, MIN_SECONDS_LEFT))

    def _chunk(self, wanted: _Wanted, mark: PageCursor, *, chunk_size: int, limit: int) -> _Chunk:
        values = {**wanted.values, "chunk_size": chunk_size, "limit": limit}
        match mark.order:
            case "id" | "newest":
                return self._chunk_by_id(wanted, values, mark)
            case "failed" if wanted.is_failed:
                run_at, job_id = mark.place
                return self._chunk_of_failed(wanted, {**values, "after_run_at": run_at, "after_id": job_id})
        raise InvalidInputError(f"--after {mark} belongs to another list; give it with the same selection")

    def _chunk_by_id(self, wanted: _Wanted, values: dict[str, Any], mark: PageCursor) -> _Chunk:
        cursor, names = (PageCursor.after_id, {}) if mark.order == "id" else (PageCursor.newest, NEWEST_FIRST)
        values = {**values, "from_id": int(mark.place[0])}
        ((scanned, end, ids),) = self._rows("job_page_by_id", values, wanted.fragment, names=names)
        return _Chunk(
            scanned=scanned,
            ids=ids,
            end=cursor(end) if scanned == values["chunk_size"] else None,
            last=cursor(ids[-1]) if ids else None,
        )

    def _chunk_of_failed(self, wanted: _Wanted, values: dict[str, Any]) -> _Chunk:
        ((scanned, ids, last, end),) = self._rows("job_page_of_failed", values, wanted.fragment)
        return _Chunk(
            scanned=scanned,
            ids=ids,
            end=PageCursor("failed", tuple(end)) if end and scanned >= values["chunk_size"] else None,
            last=PageCursor("failed", tuple(last)) if last else None,
        )

    def _filled(self, found: tuple[list[int], JobPage], wanted: Selection, with_payload: bool) -> JobPage:
        """Put the jobs into a page in the order found; one whose state has changed since is left out."""
        ids, page = found
        by_id = {each.job.id: each for some in _chunks(ids) for each in self._jobs(some, None, with_payload)}
        jobs = (by_id[each] for each in ids if each in by_id)
        return replace(page, jobs=tuple(each for each in jobs if each.state in wanted.states))

    def at_server_time(self, selection: Selection) -> Selection:
        """Return a selection whose times no longer count from now, so that a count and an action mean the same jobs."""
        return selection.at(self._database(selection)[1].now) if selection.is_relative else selection

    # -- one job ---------------------------------------------------------------------------------------------------

    def job(
        self, job_id: int | None = None, *, job_key: str | None = None, with_payload: bool = True
    ) -> JobReport | None:
        """Return everything about one job, by its id or its key; None when there is none.

        Without `with_payload` the payload is not even read, and is an empty text in the answer.
        """
        check_one_named(job_id, job_key)
        if job_id is not None:
            listed_ids(job_id)
        found = self._jobs([] if job_id is None else [job_id], job_key, with_payload=with_payload)
        if not found:
            return None
        job, state = found[0].job, found[0].state
        around = self._facts(job, state)
        return JobReport(
            job=job,
            state=state,
            at=around.now,
            reasons=reasons(job, state, around),
            attempts=retry_schedule(job, state, around.now),
            failed_at=self._failed_at(job),
        )

    def _failed_at(self, job: Job) -> datetime | None:
        """Return when the attempt with the job's last error ended; None where history did not record it."""
        if job.last_error is None:
            return None
        with suppress(SchemaMissingError, PermissionDeniedError):
            ended = end_of(self._connections, self._schema, job.id).last
            if ended is not None and ended.error == job.last_error:
                return ended.finished_at
        return None

    def _facts(self, job: Job, state: JobState) -> JobFacts:
        objects = self._objects
        can_count = job.queue_id is not None and QUEUE_INDEX in objects and state is JobState.READY
        values = {"id": job.id, "queue_id": job.queue_id, "most": MAX_UNCLAIMED if can_count else 0}
        ((now, holder, locked_at, ahead, is_bound),) = self._rows("queue_of_job", values)
        limits = [each for each in self._limits(objects) if each.task == job.task]
        return JobFacts(
            now=timestamp(now),
            queue_held_by=holder,
            queue_held_at=None if locked_at is None else timestamp(locked_at),
            ahead=ahead if can_count else None,
            ahead_is_bound=is_bound and can_count,
            workers=self._workers(objects),
            pauses=self._pauses(objects),
            limit=limits[0] if limits else None,
            locked_with_value=self._locked_with_value(job, limits),
            waiting=self._waiting(job) if state is JobState.WAITING and "_private_gw_waiting" in objects else None,
        )

    def _waiting(self, job: Job) -> WaitingGroup | None:
        rows = self._rows("list_waiting", {"job_id": job.id, "job_key": None, "limit": 1_000})
        return next((each for each in map(waiting_of, rows) if each.id == job.id), None)

    def _locked_with_value(self, job: Job, limits: Sequence[TaskLimit]) -> int | None:
        """Return how many jobs with the job's value are locked, if its task has a limit by field."""
        for field in (each.field for each in limits if each.field is not None):
            return int(self._rows("limit_of_value", {"id": job.id, "field": field})[0][0])
        return None

    # -- the whole -------------------------------------------------------------------------------------------------

    def counts(self, *, exact: bool = False) -> QueueCounts:
        """Return how many jobs are in each state, over all and by task.

        A large table is sampled, and the numbers say that they are estimates; `exact` counts it, which reads it whole.
        """
        now, pages, size, queues, held = self._rows("stats_table", self._jobs_table)[0]
        priorities = self._rows("snapshot_priorities", {"levels": MAX_PRIORITIES, "most": 1})
        first = min((row[4] for row in priorities if row[4] is not None), default=None)
        upcoming = min((row[5] for row in priorities if row[5] is not None), default=None)
        sampled, share = self._sample(pages, exact=exact)
        rows = [row for of_task in sampled.values() for row in of_task]
        objects = self._objects
        starts: dict[int, float] = dict(self._rows("task_starts")) if RENEWED_LOCKS in objects else {}
        names: dict[int, str] = dict(self._rows("task_list", {"most": MAX_TASKS}))
        failures = self._failures(objects)
        tasks = sorted((names[each], each) for each in sampled if each in names)
        return QueueCounts(
            at=timestamp(now),
            total=projected(sum(row[2] for row in rows), share),
            states=_counts(rows, share),
            oldest_due_at=None if first is None else timestamp(first),
            next_due_at=None if upcoming is None else timestamp(upcoming),
            queues=queues,
            locked_queues=held,
            table_bytes=size,
            tasks={name: _counts(sampled[each], share) for name, each in tasks},
            activity={
                name: _activity(sampled[each], share, starts.get(each), failures.get(name)) for name, each in tasks
            },
            pauses=self._pauses(objects),
            limits=self._limits(objects),
            waiting_groups=self._waiting_groups(objects),
        )

    def queues(
        self,
        *,
        after: str = "",
        limit: int = 50,
        only_locked: bool = False,
        most: int | None = None,
        names: Sequence[str] | None = None,
    ) -> list[QueueReport]:
        """Return named queues in order of their names, those after `after`, or only those of them that are held.

        The jobs of each are counted up to `most`, by default a thousand. With `names`, only these queues are returned.
        """
        wanted = None if names is None else list(names)
        values, objects = {"after": after, "limit": limit, "only_locked": only_locked, "names": wanted}, self._objects
        if QUEUE_INDEX in objects:
            limits = {"most": MAX_UNCLAIMED if most is None else most, "levels": MAX_QUEUE_PRIORITIES}
            rows = self._rows("queue_list", {**values, **limits})
        else:
            rows = self._rows("queue_list_in_backlog", {**values, "chunk_size": BACKLOG_LIMIT})
        starts: dict[str, float] = dict(self._rows("queue_starts")) if RENEWED_LOCKS in objects else {}
        paused = {each.target.name: each for each in self._pauses(objects) if each.target.kind is PauseKind.QUEUE}
        return [_queue_report(row, starts, paused) for row in rows]

    def queue_sizes(self) -> list[QueueSize]:
        """Return how many jobs wait in each named queue; nothing where gw's index of queues is missing."""
        if QUEUE_INDEX not in self._objects:
            return []
        return [QueueSize(*row) for row in self._rows("queue_sizes", timeout=COUNTING_TIMEOUT)]

    def count_queue(self, name: str) -> tuple[Count, Count]:
        """Count the jobs that wait in a named queue, and those of them that are due: all of them, which may last.

        Where our own index of queues is missing, the whole backlog is walked.
        """
        ((unclaimed, due),) = self._rows("queue_count", {"name": name}, timeout=COUNTING_TIMEOUT)
        return Count(unclaimed), Count(due)

    def tasks(self, recovery: RecoverySettings | None = None, *, exact: bool = False) -> list[TaskReport]:
        """Return every task the database knows, by name, with its jobs and the live workers that know it."""
        pages = self._rows("stats_table", self._jobs_table)[0][1]
        sampled, share = self._sample(pages, exact=exact)
        from gw_core.postgres.read.snapshots import Snapshots  # a command that shows one job waits for none of it

        snapshot = Snapshots(self._connections, self._schema).read(recovery or RecoverySettings(), with_background=True)
        if snapshot.denied is not None:
            raise PermissionDeniedError(snapshot.denied)
        return [
            TaskReport(name=name, jobs=_counts(sampled[task_id], share), known_by=snapshot.known_by(name))
            for task_id, name in self._rows("task_list", {"most": MAX_TASKS})
        ]

    def _sample(self, pages: int, *, exact: bool) -> tuple[Mapping[int, Rows], float]:
        """Return the rows of stats_sample.sql by task, and the share of the table that was read."""
        with self._sampling:
            share = 1.0 if exact else self._sampled.next_share(pages, monotonic())
        values = {"percent": 100 * share, "lately": LATELY.total_seconds()}
        rows = self._rows("stats_sample", values, timeout=EXACT_TIMEOUT if exact else STATEMENT_TIMEOUT)
        if share < 1:
            with self._sampling:
                rows, share = self._sampled.add(rows, share, pages, monotonic())
        sampled: dict[int, Rows] = defaultdict(list)
        for row in rows:
            sampled[row[0]].append(row)
        return sampled, share

    # -- the way to the database -----------------------------------------------------------------------------------

    def _jobs(self, ids: Sequence[int], key: str | None, with_payload: bool) -> list[FoundJob]:
        rows = self._rows("find_jobs", {"ids": list(ids), "key": key, "with_payload": with_payload})
        found = [FoundJob(Job(*row[:-1]), JobState(row[-1])) for row in rows]
        running = [each.job.id for each in found if each.job._locked_at is not None]
        starts = {(job_id, lock): start for job_id, lock, start in self._renewed(running)} if running else {}
        return [_with_start(each, starts) for each in found] if starts else found

    def _renewed(self, ids: Sequence[int] | None) -> Rows:
        """Return id, lock and start of the attempts whose locks were renewed; a schema of others does not note them."""
        if RENEWED_LOCKS not in self._objects:
            return []
        return self._rows("renewed_lock_list", {"ids": ids})

    @property
    def _objects(self) -> frozenset[str]:
        """Which of gw's own objects the schema has."""
        return frozenset(self._rows("schema_objects", {"schema": self._schema})[0][0])

    def _database(self, wanted: Selection) -> tuple[frozenset[str], Resolved]:
        """Read what leads to the jobs of a selection, in one round trip."""
        values = {"schema": self._schema}
        calls = [Call("schema_objects", values), Call("selection_names", values_of(wanted, self._schema))]
        with ending_within(STATEMENT_TIMEOUT + ANSWER_GRACE):
            found = read(self._connections, self._schema, calls, timeout=STATEMENT_TIMEOUT, is_planned_once=True)
        (((objects,),), (names,)) = found
        return frozenset(objects), resolved(names)

    def _workers(self, objects: frozenset[str]) -> list[WorkerInfo]:
        """Return the workers that send heartbeats."""
        limit = {"limit": MAX_WORKERS}
        found = self._rows("heartbeat_list", limit, names=RUST_WORKERS) if "_private_workers" in objects else []
        found += self._rows("heartbeat_list", limit) if "_private_gw_workers" in objects else []
        # gw's workers are in both tables; their row in gw's own table comes last, and counts.
        by_id = {row[0]: heartbeat(row) for row in found}
        return sorted(by_id.values(), key=attrgetter("id"))

    def _pauses(self, objects: frozenset[str]) -> tuple[Pause, ...]:
        return tuple(pause_of(*row) for row in self._rows("pause_list")) if "_private_gw_pauses" in objects else ()

    def _limits(self, objects: frozenset[str]) -> tuple[TaskLimit, ...]:
        return tuple(limit_of(row) for row in self._rows("limit_list")) if "_private_gw_limits" in objects else ()

    def _failures(self, objects: frozenset[str]) -> Mapping[str, RecordedFailures]:
        if "_private_gw_statistics" not in objects:
            return {}
        with suppress(PermissionDeniedError):
            return {
                name: RecordedFailures(failed, ended, timestamp(first), timestamp(last))
                for name, failed, ended, first, last in self._rows("failing_tasks", {"lately": LATELY.total_seconds()})
            }
        return {}

    def _waiting_groups(self, objects: frozenset[str]) -> int:
        return int(self._rows("count_waiting")[0][0]) if "_private_gw_waiting" in objects else 0

    @property
    def _jobs_table(self) -> dict[str, str]:
        return {"jobs_table": f"{quoted(self._schema)}._private_jobs"}

    def _rows(
        self,
        name: str,
        values: Mapping[str, Any] | None = None,
        fragment: Fragment = EVERY_ROW,
        *,
        timeout: timedelta = STATEMENT_TIMEOUT,
        names: Mapping[str, str] | None = None,
    ) -> Rows:
        call = Call(name, values or {}, {"SELECTION": fragment.text, **(names or {})})
        is_planned_once = name in GENERIC_PLANS
        return read(self._connections, self._schema, [call], timeout=timeout, is_planned_once=is_planned_once)[0]


# -- searching -------------------------------------------------------------------------------------------------------


def _with_start(found: FoundJob, starts: Mapping[tuple[int, float | None], float]) -> FoundJob:
    start = starts.get((found.job.id, found.job._locked_at))
    return found if start is None else replace(found, job=msgspec.structs.replace(found.job, _started_at=start))


def _beginning(wanted: _Wanted, limit: int) -> PageCursor:
    """Choose the order that an index serves."""
    if wanted.is_failed and not wanted.selection.is_by_name:
        return PageCursor("failed", ("infinity", LAST_ID))
    return PageCursor.next_jobs(0) if wanted.is_next and limit <= MAX_NEXT else PageCursor.after_id(0)


def _of_order(mark: PageCursor, order: str) -> PageCursor:
    if mark.order != order:
        raise InvalidInputError(f"--after {mark} belongs to another list; give an id")
    return mark


def _first_chunk_size(wanted: _Wanted, mark: PageCursor, limit: int) -> int:
    """Read no more jobs than are requested if about each one matches."""
    conditions = wanted.selection.conditions
    is_led = all(each.term.name == "state" for each in conditions) and (not conditions or mark.order != "id")
    return min(limit, MAX_CHUNK) if is_led else max(FIRST_CHUNK, min(limit, MAX_CHUNK))


def _next_chunk_size(chunk_size: int, *, took: float, left: float) -> int:
    """Return how many jobs fit into the time left, growing in steps because the next ones may not be cached."""
    affordable = int(chunk_size / max(took, 1e-6) * left)
    return max(FIRST_CHUNK, min(affordable, chunk_size * 8, MAX_CHUNK))


def _chunks(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(ids), ROWS_PER_READ):
        yield ids[start : start + ROWS_PER_READ]


# -- counting --------------------------------------------------------------------------------------------------------


def _counts(rows: Rows, share: float) -> Counts:
    """Return the number of jobs in each state."""
    return {state: projected(sum(row[2] for row in rows if row[1] == state), share) for state in JobState}


def _activity(rows: Rows, share: float, started: float | None, recorded: RecordedFailures | None) -> TaskActivity:
    """Return the states of a task's jobs; a renewed lock is older than its `locked_at`."""
    due = [row[5] for row in rows if row[1] == JobState.READY and row[5] is not None]
    failing = [row[4] for row in rows if row[4] is not None]
    running = [each for each in (started, *(row[6] for row in rows)) if each is not None]
    return TaskActivity(
        failed_lately=projected(sum(row[3] for row in rows), share),
        recorded=recorded,
        failing_since=timestamp(min(failing)) if failing else None,
        due_since=timestamp(min(due)) if due else None,
        running_since=timestamp(min(running)) if running else None,
    )


def _queue_report(row: Sequence[Any], starts: Mapping[str, float], paused: Mapping[str, Pause]) -> QueueReport:
    name, locked_by, locked_at, unclaimed, is_bound, due, is_due_bound, next_job_id, next_job_task, next_job_run_at = (
        row
    )
    started = starts.get(name)
    is_unknown = is_due_bound and not due
    return QueueReport(
        name=name,
        locked_by=locked_by,
        locked_at=None if locked_at is None else timestamp(locked_at if started is None else min(locked_at, started)),
        unclaimed=Count(unclaimed, _quality(is_bound)),
        due=Count(due, _quality(is_due_bound)),
        next_job_id=None if is_unknown else next_job_id,
        next_job_task=None if is_unknown else next_job_task,
        next_job_run_at=None if is_unknown or next_job_run_at in (None, inf) else timestamp(next_job_run_at),
        pause=paused.get(name),
    )


def _quality(is_bound: bool) -> Quality:
    return Quality.AT_LEAST if is_bound else Quality.EXACT
