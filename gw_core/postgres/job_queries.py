"""Read-only queries about jobs, queues and tasks, each with a timeout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from operator import attrgetter
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job import SMALLINT_MAX, Job, check_ids
from gw_core.domain.job_state import WAITING, JobFilter, JobState
from gw_core.domain.job_status import JobFacts, WorkerHeartbeat, reasons, retry_schedule
from gw_core.domain.narrowing import Moments, Narrowing, Numbers
from gw_core.domain.query_results import (
    Count,
    Counts,
    FoundJob,
    JobPage,
    JobReport,
    PageCursor,
    Quality,
    QueueReport,
    QueueStatistics,
    TaskReport,
    projected,
)
from gw_core.domain.recovery import RecoverySettings
from gw_core.postgres.connections import ConnectionSource
from gw_core.postgres.read_only import PlanMode, ReadLimits, read
from gw_core.postgres.row_mapping import heartbeat, timestamp
from gw_core.postgres.statements import quoted

if TYPE_CHECKING:
    from gw_core.domain.snapshot import QueueSnapshot
    from gw_core.postgres.snapshots import Snapshots

GENERIC_PLANS: Final = frozenset(
    {
        "heartbeat_list",
        "find_jobs",
        "resolve_names",
        "queue_of_job",
        "queue_list",
        "heartbeat_list_rust",
        "task_list",
        "snapshot_priorities",
        "stats_table",
    }
)
"""Statements with a generic plan: the same index serves all values."""

SEARCH_TIMEOUT: Final = timedelta(milliseconds=120)
"""How long a search for jobs takes by default."""

STATEMENT_TIMEOUT: Final = timedelta(seconds=5)
EXACT_TIMEOUT: Final = timedelta(minutes=5)
COUNTING_TIMEOUT: Final = timedelta(seconds=2)
LOCK_TIMEOUT: Final = timedelta(seconds=1)

FIRST_CHUNK: Final = 1_000
MAX_CHUNK: Final = 100_000
"""How many jobs one statement of a search reads."""

FIRST_CTID: Final = "(0,0)"
"""Before every row."""

MIN_TIMESTAMP: Final = "4714-11-24 00:00:00 BC"
"""PostgreSQL's first timestamp."""

LAST_ID: Final = "9223372036854775807"

MAX_LOCKED: Final = 10_000
"""Up to this many locked jobs, each page of them reads all; if there are more, the table is scanned."""

MAX_TIES: Final = 10_000
"""Up to this many jobs with one priority and `run_at` are skipped to find the end of the previous page."""

MIN_TABLE_PAGES: Final = 200
JOBS_PER_TABLE_PAGE: Final = 20

FRUITFUL: Final = 10
"""A chunk does not count towards the timeout if at least one in this many of its jobs matches."""

MIN_SECONDS_LEFT: Final = 0.02
"""The time assumed for the next chunk, at least."""

ROWS_PER_READ: Final = 1_000
SAMPLED_PAGES: Final = 3_000
"""A larger table is sampled by this many pages, which takes about 60 ms; a smaller one is counted."""

OUTSIDE: Final = 100_000
"""More than a smallint holds."""

MAX_WAITING: Final = 1_000
"""The limit for counting the jobs of one queue."""

BACKLOG_LIMIT: Final = 30_000
MAX_PRIORITIES: Final = 100
MAX_TASKS: Final = 10_000
MAX_WORKERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Names:
    """The ids of the names in a filter, and what the schema has."""

    task_id: int | None
    queue_id: int | None
    has_queue_index: bool
    has_locked_index: bool
    has_failed_index: bool
    has_heartbeats: bool
    has_rust_heartbeats: bool
    has_renewed_locks: bool
    renewed: Sequence[tuple[Any, ...]] = ()
    """Attempts whose locks were renewed, where the filter asks when they started: id, lock and start."""


@dataclass(frozen=True, slots=True)
class _Chunk:
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

    # -- snapshots -------------------------------------------------------------------------------------------------

    def glance(
        self, recovery: RecoverySettings | None = None, *, locks_every: timedelta | None = timedelta()
    ) -> QueueSnapshot:
        """Return what a console shows at each tick, in one round trip, at a cost that does not grow with the queue.

        `recovery` says which workers count as dead. Who looks often asks anew what workers hold only every so often,
        `locks_every`, or when it calls `count_locks`, and gives None. A part that fails is named in the answer; raised
        is only what makes looking in vain: no connection, no schema, no right to see the tables.
        """
        return self._snapshots.look(recovery or RecoverySettings(), locks_every=locks_every)

    def count_locks(self, recovery: RecoverySettings | None = None) -> timedelta | None:
        """Count anew what workers hold, for the glances that follow; they tell when it failed.

        Returned is how long the server worked at it; None where it could not say.
        Before the first glance nothing is known of the schema, and nothing is done: that glance counts by itself.
        """
        return self._snapshots.count_locks(recovery or RecoverySettings())

    @cached_property
    def _snapshots(self) -> Snapshots:
        from gw_core.postgres.snapshots import Snapshots  # a command that shows one job waits for none of it

        return Snapshots(self._connections, self._schema)

    # -- pages of jobs ---------------------------------------------------------------------------------------------

    def list_jobs(
        self,
        wanted: JobFilter,
        *,
        after: PageCursor | str | int | None = None,
        limit: int = 50,
        with_payload: bool = False,
        timeout: timedelta = SEARCH_TIMEOUT,
    ) -> JobPage:
        """Return the jobs that match, up to `limit`, and where to go on; payloads only when asked for.

        Jobs come in order of their ids, or, when the filter names a waiting state, in the order in which they will run.
        Failed ones come with the latest failure first, where our own index of them is installed. Any jobs come with the
        newest first when the list begins `after` `PageCursor.newest()`. No index leads to most other conditions:
        the search ends after `timeout` and says how far it came.
        """
        if limit < 1:
            raise InvalidInputError(f"a page of {limit} jobs holds none; ask for at least 1")
        mark = PageCursor.of(str(after)) if isinstance(after, int | str) else after
        if wanted.names_jobs:
            return self._named(wanted, mark, limit, with_payload)
        names = self._names(wanted)
        if _cannot_match(wanted, names):
            return JobPage()
        if wanted.narrowing is not None and wanted.narrowing.started_at is not None:
            names = replace(names, renewed=self._renewed(None))
        beginning = mark or _beginning(wanted, names)
        page = self._held(wanted, names, beginning, limit) or self._search(wanted, names, beginning, limit, timeout)
        return replace(self._filled(page, wanted, with_payload), order=beginning.order)

    def _named(self, wanted: JobFilter, mark: PageCursor | None, limit: int, with_payload: bool) -> JobPage:
        """Find jobs by their ids or key, without a scan."""
        least = int(_of_order(mark, "id").place[0]) if mark else 0
        with_payload = with_payload or (wanted.narrowing is not None and wanted.narrowing.needs_payload)
        ids = [each for each in wanted.ids or () if each > least]
        found: list[FoundJob] = []
        scanned = 0
        for some in _chunks(ids) if wanted.ids is not None else [[]]:
            rows = self._jobs(some, None if wanted.ids is not None else wanted.key, with_payload)
            scanned += len(rows)
            found += [each for each in rows if wanted.matches(each.job, each.state) and each.job.id > least]
            if len(found) > limit:
                return JobPage(
                    jobs=tuple(found[:limit]),
                    after=PageCursor.after_id(found[limit - 1].job.id),
                    scanned=scanned,
                    is_full=True,
                )
        return JobPage(jobs=tuple(found), scanned=scanned, is_full=len(found) == limit)

    def _held(self, wanted: JobFilter, names: _Names, mark: PageCursor, limit: int) -> tuple[list[int], JobPage] | None:
        """Find jobs among the locked ones; None if the filter does not ask for those, or if too many are locked."""
        is_meant = wanted.state is JobState.RUNNING or (wanted.state is None and wanted.worker is not None)
        if not (is_meant and names.has_locked_index) or mark.order == "newest":
            return None
        values = {**_searched(wanted, names), "after_id": int(_of_order(mark, "id").place[0])}
        rows = self._rows("job_page_of_locked", {**values, "most": MAX_LOCKED + 1, "limit": limit})
        ((scanned, ids),) = rows
        if scanned > MAX_LOCKED:
            return None
        is_full = len(ids) == limit
        after = PageCursor.after_id(ids[-1]) if is_full else None
        return ids, JobPage(after=after, scanned=scanned, is_full=is_full)

    def _search(
        self, wanted: JobFilter, names: _Names, mark: PageCursor, limit: int, timeout: timedelta
    ) -> tuple[list[int], JobPage]:
        """Scan the table in chunks, each as long as the remaining time allows.

        Chunks with many matches do not count towards the timeout: a caller that asks for many jobs waits for them.
        """
        ids: list[int] = []
        scanned, chunk_size, left = 0, _first_chunk_size(wanted, mark, limit), timeout.total_seconds()
        while True:
            began = monotonic()
            chunk = self._chunk(wanted, names, mark, chunk_size=chunk_size, limit=limit - len(ids))
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

    def _chunk(self, wanted: JobFilter, names: _Names, mark: PageCursor, *, chunk_size: int, limit: int) -> _Chunk:
        values = {**_searched(wanted, names), "chunk_size": chunk_size, "limit": limit}
        if mark.order == "id":
            return self._chunk_by_id(values, mark)
        if mark.order == "newest":
            return self._newest_chunk(values, mark)
        if mark.order == "failed":
            return self._failed_chunk(values, mark, names)
        if wanted.state not in WAITING or (mark.order == "queue") > (names.queue_id is not None):
            raise InvalidInputError(f"--after {mark} belongs to another list; give it with the same filter")
        priority, run_at, place = mark.place
        values |= {"after_priority": int(priority), "after_run_at": run_at, "after_place": place}
        if mark.order == "turn" and place != FIRST_CTID:
            among = self._rows("job_page_equals", {**values, **self._tables, "most": MAX_TIES})
            if among[0][0]:
                return self._chunk_of_ties(values, mark, *among[0][1:])
        return self._chunk_by_turn(f"job_page_by_{mark.order}", values, mark)

    def _failed_chunk(self, values: dict[str, Any], mark: PageCursor, names: _Names) -> _Chunk:
        if values["state"] is not JobState.FAILED or not names.has_failed_index:
            raise InvalidInputError(f"--after {mark} belongs to another list; give it with the same filter")
        run_at, job_id = mark.place
        return self._chunk_by_turn("job_page_of_failed", {**values, "after_run_at": run_at, "after_id": job_id}, mark)

    def _chunk_by_id(self, values: dict[str, Any], mark: PageCursor) -> _Chunk:
        values |= {"after_id": int(mark.place[0])}
        ((scanned, end, ids),) = self._rows("job_page_by_id", values)
        return _Chunk(
            scanned=scanned,
            ids=ids,
            end=PageCursor.after_id(end) if scanned == values["chunk_size"] else None,
            last=PageCursor.after_id(ids[-1]) if ids else None,
        )

    def _newest_chunk(self, values: dict[str, Any], mark: PageCursor) -> _Chunk:
        ((scanned, end, ids),) = self._rows("job_page_newest", {**values, "before_id": int(mark.place[0])})
        return _Chunk(
            scanned=scanned,
            ids=ids,
            end=PageCursor.newest(end) if scanned == values["chunk_size"] else None,
            last=PageCursor.newest(ids[-1]) if ids else None,
        )

    def _chunk_by_turn(self, name: str, values: dict[str, Any], mark: PageCursor) -> _Chunk:
        ((scanned, ids, last, end),) = self._rows(name, values)
        return _Chunk(
            scanned=scanned,
            ids=ids,
            end=PageCursor(mark.order, tuple(end)) if scanned == values["chunk_size"] else None,
            last=PageCursor(mark.order, tuple(last)) if last else None,
        )

    def _chunk_of_ties(self, values: dict[str, Any], mark: PageCursor, pages: int, next_moment: str) -> _Chunk:
        """Read jobs that share priority and `run_at` with very many others, by pages of the table."""
        priority, run_at, place = mark.place
        bound = int(place.strip("()").split(",")[0]) + max(MIN_TABLE_PAGES, values["chunk_size"] // JOBS_PER_TABLE_PAGE)
        chunk = self._chunk_by_turn("job_page_of_equals", {**values, "before_place": f"({bound},0)"}, mark)
        if chunk.end is not None:
            return chunk
        if bound < pages:
            return replace(chunk, end=PageCursor("turn", (priority, run_at, f"({bound},0)")))
        return replace(chunk, end=_after_equals(int(priority), run_at, next_moment))

    def _filled(self, found: tuple[list[int], JobPage], wanted: JobFilter, with_payload: bool) -> JobPage:
        """Read the jobs of a page in the order found; omit those whose state has changed since."""
        ids, page = found
        by_id = {each.job.id: each for some in _chunks(ids) for each in self._jobs(some, None, with_payload)}
        jobs = (by_id[each] for each in ids if each in by_id)
        return replace(page, jobs=tuple(each for each in jobs if wanted.state in (None, each.state)))

    # -- one job ---------------------------------------------------------------------------------------------------

    def get(self, job_id: int | None = None, *, job_key: str | None = None) -> Job | None:
        """Return one job with its payload, by its id or its key; None when there is none."""
        found = self._jobs([] if job_id is None else [job_id], job_key, with_payload=True)
        return found[0].job if found else None

    def job(
        self, job_id: int | None = None, *, job_key: str | None = None, with_payload: bool = True
    ) -> JobReport | None:
        """Return everything about one job, by its id or its key; None when there is none.

        Without `with_payload` the payload is not even read, and is an empty text in the answer.
        """
        if (job_id is None) == (job_key is None):
            raise InvalidInputError("name one job: give either its id or its key")
        if job_id is not None:
            check_ids([job_id])
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
        )

    def _facts(self, job: Job, state: JobState) -> JobFacts:
        names = self._names(JobFilter())
        can_count = job.queue_id is not None and names.has_queue_index and state is JobState.READY
        values = {"id": job.id, "queue_id": job.queue_id, "most": MAX_WAITING if can_count else 0}
        ((now, holder, held_at, ahead, is_bound),) = self._rows("queue_of_job", values)
        return JobFacts(
            now=timestamp(now),
            queue_held_by=holder,
            queue_held_at=None if held_at is None else timestamp(held_at),
            ahead=ahead if can_count else None,
            ahead_is_bound=is_bound and can_count,
            heartbeats=self._heartbeats(names),
        )

    # -- the whole -------------------------------------------------------------------------------------------------

    def statistics(self, *, exact: bool = False) -> QueueStatistics:
        """Return how many jobs are in each state, over all and by task.

        A large table is sampled, and the numbers say that they are estimates; `exact` counts it, which reads it whole.
        """
        now, pages, size, queues, held = self._rows("stats_table", self._tables)[0]
        priorities = self._rows("snapshot_priorities", {"levels": MAX_PRIORITIES, "most": 1})
        first = min((row[4] for row in priorities if row[4] is not None), default=None)
        upcoming = min((row[5] for row in priorities if row[5] is not None), default=None)
        hits, share = self._sample(pages, exact=exact)
        tasks = {row[0]: row[1] for row in self._rows("task_list", {"most": MAX_TASKS})}
        by_task = {
            tasks[each]: _counted(_of_task(hits, each), share) for each in {task for task, _ in hits} & set(tasks)
        }
        return QueueStatistics(
            at=timestamp(now),
            total=projected(sum(hits.values()), share),
            states=_counted(_over_all(hits), share),
            first_due_at=None if first is None else timestamp(first),
            next_due_at=None if upcoming is None else timestamp(upcoming),
            queues=queues,
            held_queues=held,
            table_bytes=size,
            tasks=dict(sorted(by_task.items())),
        )

    def queues(
        self, *, after: str = "", limit: int = 50, only_held: bool = False, most: int | None = None
    ) -> list[QueueReport]:
        """Return named queues in order of their names, those after `after`, or only those of them that are held.

        The jobs of each are counted up to `most`, a thousand unless told otherwise.
        """
        values = {"after": after, "limit": limit, "only_held": only_held}
        if self._names(JobFilter()).has_queue_index:
            rows = self._rows("queue_list", {**values, "most": MAX_WAITING if most is None else most})
        else:
            rows = self._rows("queue_list_in_backlog", {**values, "chunk_size": BACKLOG_LIMIT})
        return [_queue_report(*row) for row in rows]

    def count_queue(self, name: str) -> tuple[Count, Count]:
        """Count the jobs that wait in a named queue, and those of them that are due: all of them, which may last.

        Where our own index of queues is missing, the whole backlog is walked.
        """
        ((waiting, due),) = self._rows("queue_count", {"name": name}, timeout=COUNTING_TIMEOUT)
        return Count(waiting), Count(due)

    def tasks(self, *, exact: bool = False) -> list[TaskReport]:
        """Return every task the database knows, by name, with its jobs and the live workers that know it."""
        pages = self._rows("stats_table", self._tables)[0][1]
        hits, share = self._sample(pages, exact=exact)
        live = self._live_workers()
        return [
            TaskReport(name=name, jobs=_counted(_of_task(hits, task_id), share), known_by=_workers_with(name, live))
            for task_id, name in self._rows("task_list", {"most": MAX_TASKS})
        ]

    def _sample(self, pages: int, *, exact: bool) -> tuple[dict[tuple[int, str], int], float]:
        """Return the hits by task and state, and the share of the table that was read."""
        share = 1.0 if exact or pages <= SAMPLED_PAGES else SAMPLED_PAGES / pages
        timeout = EXACT_TIMEOUT if exact else STATEMENT_TIMEOUT
        rows = self._rows("stats_sample", {"percent": 100 * share}, timeout=timeout)
        return {(row[0], row[1]): row[2] for row in rows}, share

    def _live_workers(self) -> list[WorkerHeartbeat]:
        ((now, *_),) = self._rows("queue_of_job", {"id": None, "queue_id": None, "most": 0})
        return [each for each in self._heartbeats(self._names(JobFilter())) if each.is_live(timestamp(now))]

    # -- the way to the database -----------------------------------------------------------------------------------

    def _jobs(self, ids: Sequence[int], key: str | None, with_payload: bool) -> list[FoundJob]:
        rows = self._rows("find_jobs", {"ids": list(ids), "key": key, "with_payload": with_payload})
        found = [FoundJob(Job(*row[:-1]), JobState(row[-1])) for row in rows]
        running = [each.job.id for each in found if each.job.locked_at_epoch is not None]
        starts = {(job_id, lock): start for job_id, lock, start in self._renewed(running)} if running else {}
        return [_with_start(each, starts) for each in found] if starts else found

    def _renewed(self, ids: Sequence[int] | None) -> list[tuple[Any, ...]]:
        """Return id, lock and start of the attempts whose locks were renewed; none without gw's table."""
        if not self._names(JobFilter()).has_renewed_locks:
            return []
        return self._rows("renewed_lock_list", {"ids": ids})

    def _names(self, wanted: JobFilter) -> _Names:
        values = {"task": wanted.task, "queue": wanted.queue, **self._tables}
        return _Names(*self._rows("resolve_names", values)[0])

    def _heartbeats(self, names: _Names) -> list[WorkerHeartbeat]:
        limit = {"limit": MAX_WORKERS}
        found = self._rows("heartbeat_list_rust", limit) if names.has_rust_heartbeats else []
        found += self._rows("heartbeat_list", limit) if names.has_heartbeats else []
        # gw's workers are in both tables; their row in gw's own table comes last, and counts.
        by_id = {row[0]: heartbeat(*row) for row in found}
        return [WorkerHeartbeat.from_worker(each) for each in sorted(by_id.values(), key=attrgetter("id"))]

    @property
    def _tables(self) -> dict[str, str]:
        schema = quoted(self._schema)
        names = {
            "jobs": "_private_jobs",
            "workers": "_private_gw_workers",
            "rust_workers": "_private_workers",
            "renewed": "_private_gw_renewed_locks",
        }
        indexes = {f"{key}_index": f"{schema}.jobs_gw_{key}_index" for key in ("locked", "failed")}
        return {**indexes, **{f"{key}_table": f"{schema}.{name}" for key, name in names.items()}}

    def _rows(
        self, name: str, values: Mapping[str, Any] | None = None, *, timeout: timedelta = STATEMENT_TIMEOUT
    ) -> list[tuple[Any, ...]]:
        plans = PlanMode.GENERIC if name in GENERIC_PLANS else PlanMode.CUSTOM
        limits = ReadLimits(statement=timeout, lock=LOCK_TIMEOUT, plans=plans)
        return read(self._connections, self._schema, [(name, values or {})], limits)[0]


# -- searching -------------------------------------------------------------------------------------------------------


def _with_start(found: FoundJob, starts: Mapping[tuple[int, float | None], float]) -> FoundJob:
    start = starts.get((found.job.id, found.job.locked_at_epoch))
    return found if start is None else replace(found, job=msgspec.structs.replace(found.job, started_at_epoch=start))


def _cannot_match(wanted: JobFilter, names: _Names) -> bool:
    """Return whether a name is unknown or two conditions exclude each other, so that nothing can match."""
    return (
        (wanted.task is not None and names.task_id is None)
        or (wanted.queue is not None and names.queue_id is None)
        or (wanted.worker is not None and wanted.state not in (None, JobState.RUNNING))
    )


def _searched(wanted: JobFilter, names: _Names) -> dict[str, Any]:
    """Return the conditions as values of the statements."""
    return {
        "state": wanted.state,
        "task_id": names.task_id,
        "queue_id": names.queue_id,
        "worker": wanted.worker,
        "flag": wanted.flag,
        "error": wanted.error,
        "renewed_ids": [job_id for job_id, _, _ in names.renewed],
        "renewed_locks": [lock for _, lock, _ in names.renewed],
        "renewed_starts": [start for _, _, start in names.renewed],
        **_narrowed(wanted.narrowing or Narrowing()),
    }


def _narrowed(narrowing: Narrowing) -> dict[str, Any]:
    return {
        "priorities": _numbers(narrowing.priority),
        "attempts": _numbers(narrowing.attempts),
        "run_between": _moments(narrowing.run_at),
        "started_between": _moments(narrowing.started_at),
        "payload_path": None if narrowing.payload_path is None else list(narrowing.payload_path),
        "payload_value": narrowing.payload_value,
        "payload_text": narrowing.payload_text,
    }


def _numbers(bounds: Numbers | None) -> str | None:
    """Return bounds as PostgreSQL writes a range of them."""
    if bounds is None:
        return None
    least, greatest = bounds
    if least is not None and greatest is not None and least > greatest:
        return "empty"
    low, high = ("" if bound is None else str(min(max(bound, -OUTSIDE), OUTSIDE)) for bound in bounds)
    return f"[{low},{high}]"


def _moments(bounds: Moments | None) -> str | None:
    if bounds is None:
        return None
    earliest, latest = bounds
    if earliest is not None and latest is not None and earliest > latest:
        return "empty"
    low, high = ("" if bound is None else bound.isoformat() for bound in bounds)
    return f"[{low},{high}]"


def _beginning(wanted: JobFilter, names: _Names) -> PageCursor:
    """Return the start of the order that an index serves."""
    if wanted.state is JobState.FAILED and names.has_failed_index:
        return PageCursor("failed", ("infinity", LAST_ID))
    if wanted.state not in WAITING:
        return PageCursor.after_id(0)
    if names.queue_id is not None and names.has_queue_index:
        return PageCursor("queue", ("-32768", "-infinity", "0"))
    return PageCursor("turn", ("-32768", "-infinity", FIRST_CTID))


def _after_equals(priority: int, run_at: str, next_moment: str) -> PageCursor | None:
    """Return the cursor behind all jobs with one `run_at`; an infinite time has no successor."""
    if run_at == "-infinity":
        return PageCursor("turn", (str(priority), MIN_TIMESTAMP, FIRST_CTID))
    if run_at != "infinity":
        return PageCursor("turn", (str(priority), next_moment, FIRST_CTID))
    return PageCursor("turn", (str(priority + 1), "-infinity", FIRST_CTID)) if priority < SMALLINT_MAX else None


def _of_order(mark: PageCursor, order: str) -> PageCursor:
    if mark.order != order:
        raise InvalidInputError(f"--after {mark} belongs to another list; give an id")
    return mark


def _first_chunk_size(wanted: JobFilter, mark: PageCursor, limit: int) -> int:
    """Read only as many jobs as requested if nearly every one matches."""
    is_led = wanted == JobFilter(state=wanted.state) and (wanted.state is None or mark.order != "id")
    return min(limit, MAX_CHUNK) if is_led else max(FIRST_CHUNK, min(limit, MAX_CHUNK))


def _next_chunk_size(chunk_size: int, *, took: float, left: float) -> int:
    """Return how many jobs fit into the time left, growing in steps because the next ones may not be cached."""
    affordable = int(chunk_size / max(took, 1e-6) * left)
    return max(FIRST_CHUNK, min(affordable, chunk_size * 8, MAX_CHUNK))


def _chunks(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(ids), ROWS_PER_READ):
        yield ids[start : start + ROWS_PER_READ]


# -- counting --------------------------------------------------------------------------------------------------------

Hits = Mapping[tuple[int, str], int]


def _over_all(hits: Hits) -> dict[str, int]:
    return {state: sum(count for (_, each), count in hits.items() if each == state) for state in JobState}


def _of_task(hits: Hits, task_id: int) -> dict[str, int]:
    return {state: hits.get((task_id, state), 0) for state in JobState}


def _counted(hits: Mapping[str, int], share: float) -> Counts:
    return {state: projected(hits[state], share) for state in JobState}


def _queue_report(
    name: str,
    held_by: str | None,
    held_at: float | None,
    waiting: int,
    is_bound: bool,
    due: int,
    head_id: int | None,
    head_task: str | None,
    head_run_at: float | None,
) -> QueueReport:
    quality = Quality.AT_LEAST if is_bound else Quality.EXACT
    return QueueReport(
        name=name,
        held_by=held_by,
        held_at=None if held_at is None else timestamp(held_at),
        waiting=Count(waiting, quality),
        due=Count(due, quality),
        head_id=head_id,
        head_task=head_task,
        head_run_at=None if head_run_at is None else timestamp(head_run_at),
    )


def _workers_with(task: str, workers: Sequence[WorkerHeartbeat]) -> tuple[str, ...] | None:
    """Return the workers that know a task; None if no live worker reports its tasks."""
    reporting = [each for each in workers if each.tasks is not None]
    return tuple(each.worker_id for each in reporting if task in (each.tasks or ())) if reporting else None
