"""Read a snapshot of a queue: everything a console draws at each refresh, in two round trips of bounded cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from time import monotonic, perf_counter
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from gw_core.domain.errors import DatabaseError, DatabaseUnavailableError, PermissionDeniedError, SchemaMissingError
from gw_core.domain.job.job import timestamp
from gw_core.domain.reports.query_results import Count, Quality
from gw_core.domain.reports.snapshot import (
    LockedQueue,
    PrioritySummary,
    QueueSnapshot,
    SchemaInfo,
    ServerInfo,
    TableCounters,
)
from gw_core.domain.rules.sweep_rules import RecoverySettings, WorkerInfo, is_dead, merged
from gw_core.postgres.connection.connections import ConnectionSource
from gw_core.postgres.connection.row_mapping import RUST_WORKERS, heartbeat
from gw_core.postgres.connection.statements import quoted
from gw_core.postgres.read.read_only import Rows, read
from gw_core.postgres.road.add_calls import Call
from gw_core.postgres.road.cron_store import CRON_PAUSES, known_cron_items

STATEMENT_TIMEOUT: Final = timedelta(milliseconds=500)
LOCK_TIMEOUT: Final = timedelta(milliseconds=100)

MAX_LOCKED: Final = 10_000
MAX_FAILED: Final = 2_000
MAX_PRIORITIES: Final = 50
MAX_READY: Final = 1_000
MIN_READY: Final = 20
MAX_READY_TOTAL: Final = 1_000
"""Ready jobs are counted up to this over all priorities, so that fifty of them cost no more than one: beside workers,
each may lie on a page of the table of its own."""

MAX_WORKERS: Final = 500
MAX_QUEUES: Final = 200

LOCKED_INDEX: Final = "jobs_gw_locked_index"
HEARTBEATS: Final = "_private_gw_workers"

OBJECTS: Final = 9
"""The column of snapshot_place.sql that names the objects of gw and graphile_worker_rs."""


REQUIRED: Final = ("place", "now")
"""The parts without which there is no snapshot."""

Failures = tuple[tuple[str, DatabaseError], ...]
"""Parts of a snapshot that failed, and why."""


class Background(NamedTuple):
    """The parts of a snapshot that change seldom or cost more: several snapshots use one reading."""

    answers: Mapping[str, Rows]
    errors: Failures
    read_at: float
    """By the monotonic clock."""

    @property
    def objects(self) -> frozenset[str]:
        """What the schema has: which statements can be sent."""
        return frozenset(self.answers["place"][0][OBJECTS])

    @property
    def age(self) -> timedelta:
        return timedelta(seconds=monotonic() - self.read_at)

    @property
    def server_time(self) -> timedelta | None:
        return _server_time(self.answers)


class Snapshots:
    """Reads snapshots of one queue; safe to share between threads. Raises our errors, not the driver's."""

    def __init__(self, connections: ConnectionSource, schema: str) -> None:
        self._connections = connections
        self._schema = schema
        self._background: Background | None = None
        self._priority_count = 1

    def read(self, recovery: RecoverySettings, *, with_background: bool) -> QueueSnapshot:
        """Return the current snapshot; `recovery` defines which workers are presumed dead."""
        background = self._background
        if with_background or background is None:
            background = self.read_background(recovery)
        most_ready = max(MIN_READY, min(MAX_READY, MAX_READY_TOTAL // self._priority_count))
        began = perf_counter()
        answers, errors = self._ask(self._questions(background.objects, most_ready))
        took = timedelta(seconds=perf_counter() - began)
        if not with_background and any(isinstance(error, SchemaMissingError) for _, error in errors):
            return self.read(recovery, with_background=True)  # the schema has changed since
        snapshot = _snapshot(self._schema, background, answers, most_ready, recovery)
        self._priority_count = max(1, len(snapshot.priorities))
        errors += background.errors
        return replace(
            snapshot,
            took=took,
            errors=tuple((part, str(error)) for part, error in errors),
            denied=next((str(error) for _, error in errors if isinstance(error, PermissionDeniedError)), None),
        )

    def read_background(self, recovery: RecoverySettings) -> Background:
        """Read again what the next snapshots use as well.

        Locks are among it, because the index of locked jobs keeps an entry for each job that was ever run until vacuum
        has come, and all of them are walked past.
        """
        known = self._background
        while True:
            objects = frozenset[str]() if known is None else known.objects
            answers, errors = self._ask(self._background_questions(objects, recovery))
            known = self._background = Background(answers, errors, monotonic())
            # Only the first reading, and the first after the schema has changed, have asked for the wrong things.
            if known.objects == objects:
                return known

    # -- what is asked -----------------------------------------------------------------------------------------------

    def _questions(self, objects: frozenset[str], most_ready: int) -> dict[str, Call]:
        """Return the statements of each refresh by the part of the snapshot they fill."""
        questions = {
            "now": Call("snapshot_now"),
            "counters": Call("snapshot_counters", self._relations),
            "priorities": Call("snapshot_priorities", {"levels": MAX_PRIORITIES, "most": most_ready + 1}),
            "queues": Call("snapshot_queues", {"queues": MAX_QUEUES + 1}),
        }
        if HEARTBEATS in objects:
            questions["workers"] = Call("heartbeat_list", {"limit": MAX_WORKERS})
        if "_private_gw_renewed_locks" in objects:
            questions["queue starts"] = Call("queue_starts")
        if "_private_workers" in objects:
            questions["rust workers"] = Call("heartbeat_list", {"limit": MAX_WORKERS}, RUST_WORKERS)
        return {**questions, "server_time": Call("snapshot_server_time")}

    def _background_questions(self, objects: frozenset[str], recovery: RecoverySettings) -> dict[str, Call]:
        """Return the statements of the background; the first describes the server."""
        questions = {
            "place": Call("snapshot_place", {"schema": self._schema, **self._relations}),
            "revision": Call("snapshot_revision"),
            "sizes": Call("snapshot_sizes", self._relations),
            "crontabs": Call("list_cron_items"),
        }
        if LOCKED_INDEX in objects:
            flags = list(recovery.resilient_flags)
            questions["locks"] = Call("snapshot_locks", {"most": MAX_LOCKED + 1, "resilient_flags": flags})
        if "jobs_gw_failed_index" in objects:
            questions["failed"] = Call("snapshot_failed", {"most": MAX_FAILED + 1})
        if "_private_gw_pauses" in objects:
            questions["cron pauses"] = CRON_PAUSES
        return {**questions, "server_time": Call("snapshot_server_time")}

    @property
    def _relations(self) -> Mapping[str, str]:
        names = {
            "jobs_table": "_private_jobs",
            "waiting_index": "jobs_main_index",
            "failed_index": "jobs_gw_failed_index",
        }
        schema = quoted(self._schema)
        return {key: f"{schema}.{name}" for key, name in names.items()}

    def _ask(self, questions: Mapping[str, Call]) -> tuple[dict[str, Rows], Failures]:
        """Run all queries together; when a part fails, run them one by one and name those that fail again."""
        try:
            return dict(zip(questions, self._rows(list(questions.values())), strict=True)), ()
        except DatabaseUnavailableError:
            raise
        except DatabaseError:
            return self._ask_one_by_one(questions)

    def _ask_one_by_one(self, questions: Mapping[str, Call]) -> tuple[dict[str, Rows], Failures]:
        answers: dict[str, Rows] = {}
        errors: list[tuple[str, DatabaseError]] = []
        for part, question in questions.items():
            if part == "server_time":  # of a statement alone it would say nothing
                continue
            try:
                (answers[part],) = self._rows([question])
            except DatabaseUnavailableError:
                raise
            except DatabaseError as error:
                if part in REQUIRED:
                    raise
                errors.append((part, error))
        return answers, tuple(errors)

    def _rows(self, questions: Sequence[Call]) -> list[Rows]:
        """Run statements in one transaction and one trip there and back."""
        # Planning these again at each refresh would take longer than running them.
        timeouts = {"timeout": STATEMENT_TIMEOUT, "lock_timeout": LOCK_TIMEOUT}
        return read(self._connections, self._schema, questions, **timeouts, is_planned_once=True)


# -- what is answered --------------------------------------------------------------------------------------------------


def _snapshot(
    schema: str, background: Background, answers: Mapping[str, Rows], most_ready: int, recovery: RecoverySettings
) -> QueueSnapshot:
    now, blocked = answers["now"][0]
    server_time = _server_time(answers)
    answers = {**background.answers, **answers}
    place = answers["place"][0]
    estimates = _estimates(answers.get("sizes"))
    held = _locked_queues(answers.get("queues", ()), answers.get("queue starts", ()))
    priorities = [_head(row, most=most_ready) for row in answers.get("priorities", ())]
    return QueueSnapshot(
        at=timestamp(now),
        took=timedelta(),
        server_time=server_time,
        server=_server(place),
        schema=_installed(schema, place, answers.get("revision")),
        counters=_counters(answers.get("counters")),
        total=estimates.get("total"),
        unclaimed=estimates.get("unclaimed"),
        running=_running(answers.get("locks")),
        locks_age=background.age if "locks" in answers else None,
        failed=_failed(answers.get("failed"), estimates.get("failed")),
        table_bytes=estimates["bytes"].value if "bytes" in estimates else None,
        priorities=priorities[:MAX_PRIORITIES],
        has_all_priorities=len(priorities) <= MAX_PRIORITIES,
        workers=_workers(answers, timestamp(now), background.age, held, recovery),
        workers_are_all=_has_all_workers(answers, background.objects),
        locked_queues=held[:MAX_QUEUES],
        locked_queues_are_all=len(held) <= MAX_QUEUES,
        crontabs=known_cron_items(answers.get("crontabs", []), answers.get("cron pauses", [])),
        blocked=blocked,
    )


def _server_time(answers: Mapping[str, Rows]) -> timedelta | None:
    return timedelta(seconds=answers["server_time"][0][0]) if "server_time" in answers else None


def _server(place: tuple[Any, ...]) -> ServerInfo:
    version, database, user, host, port, started, in_recovery, read_only, *_, may_change_jobs = place
    return ServerInfo(version, database, user, host, port, timestamp(started), in_recovery, read_only, may_change_jobs)


def _installed(schema: str, place: tuple[Any, ...], revision: Rows | None) -> SchemaInfo:
    hidden, objects, *_ = place[OBJECTS - 1 :]
    return SchemaInfo(
        name=schema,
        revision=revision[0][0] if revision else None,
        rows_hidden=hidden,
        has_heartbeats=HEARTBEATS in objects,
    )


def _counters(rows: Rows | None) -> TableCounters | None:
    if not rows:
        return None
    inserted, updated, deleted, live, dead, vacuumed = rows[0]
    return TableCounters(inserted, updated, deleted, live, dead, None if vacuumed is None else timestamp(vacuumed))


def _estimates(rows: Rows | None) -> dict[str, Count]:
    """Return the size of the table, and what the statistics estimate."""
    if not rows:
        return {}
    size, live, unclaimed, failed = rows[0]
    estimates = {"total": live, "unclaimed": unclaimed, "failed": failed}
    known = {name: Count(round(each), Quality.ESTIMATE) for name, each in estimates.items() if each is not None}
    return {**known, "bytes": Count(size)}


def _head(row: tuple[Any, ...], *, most: int) -> PrioritySummary:
    priority, ready, oldest_id, task, oldest, upcoming = row
    oldest_at, upcoming_at = (None if each is None else timestamp(each) for each in (oldest, upcoming))
    return PrioritySummary(priority, _bounded(ready, most), oldest_id, task, oldest_at, upcoming_at)


def _locked_queues(rows: Rows | tuple[()], starts: Rows | tuple[()]) -> list[LockedQueue]:
    """Return the locked queues, the oldest first; a lock that was renewed is as old as the attempt that holds it."""
    began: dict[str, float] = dict(starts)
    queues = [
        LockedQueue(name=name, locked_by=by, locked_at=timestamp(min(at, began.get(name, at)))) for name, by, at in rows
    ]
    return sorted(queues, key=attrgetter("locked_at"))


def _running(rows: Rows | None) -> Count | None:
    return None if rows is None else _bounded(sum(row[1] for row in rows), MAX_LOCKED)


def _failed(rows: Rows | None, estimate: Count | None) -> Count | None:
    """Return what was counted; beyond the bound the statistics know better, if they know of this many at all."""
    if not rows:
        return None
    counted = _bounded(rows[0][0], MAX_FAILED)
    is_beyond = counted.quality is Quality.AT_LEAST and estimate is not None and estimate.value > MAX_FAILED
    return estimate if is_beyond else counted


def _workers(
    answers: Mapping[str, Rows],
    now: datetime,
    locks_age: timedelta,
    held: Sequence[LockedQueue],
    recovery: RecoverySettings,
) -> list[WorkerInfo]:
    """Return every worker known by a heartbeat or by a lock among those read."""
    heartbeats = [heartbeat(row) for part in ("workers", "rust workers") for row in answers.get(part, ())]
    holders = [
        WorkerInfo(id=name, jobs=jobs, lock_age=locks_age + timedelta(seconds=latest), is_resilient=resilient)
        for name, jobs, latest, resilient in answers.get("locks", ())
        if name is not None
    ]
    workers = merged(heartbeats, with_queues(holders, held, now))
    return [replace(worker, is_stale=is_dead(worker, recovery)) for worker in workers]


def _has_all_workers(answers: Mapping[str, Rows], objects: frozenset[str]) -> bool:
    """Return whether every heartbeat and the locks were read."""
    tables = {"workers": HEARTBEATS, "rust workers": "_private_workers"}
    parts = {"locks", "queues"} | {part for part, table in tables.items() if table in objects}
    return parts <= answers.keys() and all(len(answers.get(part, ())) < MAX_WORKERS for part in tables)


def with_queues(holders: Sequence[WorkerInfo], held: Sequence[LockedQueue], now: datetime) -> list[WorkerInfo]:
    """Add to each holder of jobs the queues it holds, and the holders of queues alone; a pause is no worker."""
    known = {each.id: each for each in holders}
    for queue in held:
        if queue.locked_by is not None and not queue.is_paused:
            holder = known.get(queue.locked_by, WorkerInfo(id=queue.locked_by))
            age = now - queue.locked_at
            latest = age if holder.lock_age is None else min(age, holder.lock_age)
            known[queue.locked_by] = replace(holder, queues=holder.queues + 1, lock_age=latest)
    return list(known.values())


def _bounded(counted: int, most: int) -> Count:
    return Count(counted) if counted <= most else Count(most, Quality.AT_LEAST)
