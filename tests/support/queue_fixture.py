"""Real pools on a real database: start them, receive their events, and wait for them with deadlines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Self, TypeVar, cast

import psycopg

from gw_core import Event, Events, Runner, RunResult, TaskRegistry, WorkerSettings
from support.log_recorder import LogRecorder as LogRecorder
from support.rows import Rows
from support.stall_clock import StallClock
from support.waiting import wait_until

DEADLINE = 60.0
NEVER = timedelta(hours=1)
"""A poll interval that shows that nothing waits for the poll."""

GRACE = timedelta(minutes=10)
"""What runs may end in its own time, on a machine that stands still now and then too."""

END_SESSIONS = """
select count(pg_terminate_backend(pid)) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and application_name like 'gw%'
"""

E = TypeVar("E", bound=Event)
Function = Callable[..., object]


def ms(number: float) -> timedelta:
    return timedelta(milliseconds=number)


class EventRecorder:
    """Every event of a runner in the order emitted; a test waits for the one it needs."""

    def __init__(self, events: Events) -> None:
        self.all: list[Event] = []
        self._came = threading.Condition()
        events.on("*", self._keep)

    def _keep(self, event: Event) -> None:
        with self._came:
            self.all.append(event)
            self._came.notify_all()

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in list(self.all) if type(event) is kind]

    def names(self) -> list[str]:
        return [event.name for event in list(self.all)]

    def wait_for(
        self,
        kind: type[E],
        where: Callable[[E], object] = lambda event: True,
        *,
        count: int = 1,
        deadline: float = DEADLINE,
    ) -> list[E]:
        def found() -> list[E]:
            return [event for event in self.of(kind) if where(event)]

        with self._came:
            came = self._came.wait_for(lambda: len(found()) >= count, deadline)
        assert came, f"waited {deadline:g} s for {count} {kind.__name__}; events: {self.names()[-30:]}"
        return found()


class RunningWorker:
    """A running runner, its events, and its end."""

    def __init__(self, runner: Runner, recorded: EventRecorder, log: LogRecorder) -> None:
        self.runner = runner
        self.recorded = recorded
        self.log = log
        self.result: RunResult | None = None
        self._waiting = threading.Thread(target=self._wait, daemon=True)

    def _wait(self) -> None:
        self.result = self.runner.wait()

    def start(self) -> None:
        self.runner.start()
        self._waiting.start()

    @property
    def worker_id(self) -> str:
        return cast(str, self.runner.worker_id)

    # Tests of failures set up what a user cannot cause, and so reach into the runner; they do it here.

    @property
    def pool(self) -> Any:
        return self.runner._pool

    @property
    def claimer(self) -> Any:
        return self.pool.claimer

    @property
    def own_locks(self) -> Any:
        return self.pool._own_locks

    @property
    def settler(self) -> Any:
        return self.pool.settler

    @property
    def heartbeat(self) -> Any:
        return self.runner._heartbeat

    def join(self, seconds: float) -> None:
        """Wait so long for the end, whether it comes or not."""
        self._waiting.join(seconds)

    def request_stop(self) -> None:
        self.runner.stop("the test asked")

    def stop(self, *, within: float = DEADLINE) -> RunResult:
        self.request_stop()
        return self.end(within=within)

    def end(self, *, within: float = DEADLINE) -> RunResult:
        """Wait for the end without asking for it; `within` leaves out the time for which the machine stood still."""
        with StallClock() as watch:
            self._waiting.join(DEADLINE)
        assert self.result is not None, f"the runner did not end within {DEADLINE:g} s"
        assert watch.seconds <= within, f"the runner took {watch.seconds:g} s to end"
        return self.result


class Gate:
    """A task that stands still until the test opens the gate."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._arrived = threading.Condition()
        self.arrived = 0

    def __call__(self, payload: object) -> None:
        with self._arrived:
            self.arrived += 1
            self._arrived.notify_all()
        assert self._open.wait(DEADLINE), "nobody opened the gate"

    def open(self) -> None:
        self._open.set()

    def wait_for(self, count: int) -> None:
        with self._arrived:
            assert self._arrived.wait_for(lambda: self.arrived >= count, DEADLINE), f"{self.arrived} of {count} arrived"


class QueueFixture(Rows):
    """A database with the newest schema: a client, runners, and its rows."""

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, **options)
        self._gates: list[Gate] = []

    def empty(self) -> Self:
        """Delete all rows, once the sessions of earlier tests have ended: tests count sessions, or end them by name.

        The server notices some time after a client has disconnected.
        """
        if not self.is_pooled:
            wait_until(lambda: self.value(END_SESSIONS) == 0, what="the sessions of earlier tests to end")
        return super().empty()

    # -- rows

    def add_in(self, connection: psycopg.Connection[Any], task: str, **options: Any) -> int:
        job = self.client.add(task, conn=connection, **options)
        assert job is not None
        return job.id

    def fill(self, count: int, *, task: str = "work", queue: str = "null") -> None:
        """Add many jobs in one statement; `queue` is an SQL expression of `n`, counted from 1."""
        self.run(
            "select count(*) from add_jobs(array(select ("
            f"%s, json_build_object('n', n), {queue}, null, null, null, null, null)::job_spec"
            " from generate_series(1, %s) as n order by n))",
            task,
            count,
        )

    def held(self) -> list[Any]:
        """What is locked: ids of jobs, and names of queues."""
        jobs = self.run("select id from _private_jobs where locked_by is not null or locked_at is not null order by id")
        queues = self.run("select queue_name from _private_job_queues where not is_available or locked_by is not null")
        return [row["id"] for row in jobs] + [row["queue_name"] for row in queues]

    def let_retries_wait(self) -> None:
        """As after nine attempts more: what fails now is due in six hours, however long the machine stands still."""
        self.run("update _private_jobs set attempts = attempts + 9, max_attempts = max_attempts + 9")

    def force_unlock(self, *pools: str) -> None:
        self.run("select force_unlock_workers(%s)", list(pools))

    def kill_connections(self, application_name: str) -> int:
        """End the connections of that name, as an administrator or a failover does; returns how many."""
        rows = self.run(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and application_name = %s",
            application_name,
        )
        return len(rows)

    def connections(self, names: str = "gw:%") -> list[str]:
        rows = self.run(
            "select application_name from pg_stat_activity"
            " where datname = current_database() and application_name like %s order by 1",
            names,
        )
        return [row["application_name"] for row in rows]

    # -- runners

    def gate(self) -> Gate:
        gate = Gate()
        self._gates.append(gate)
        return gate

    def runner(
        self, tasks: TaskRegistry | dict[str, Function], *, url: str | None = None, **options: Any
    ) -> tuple[Runner, EventRecorder, LogRecorder]:
        registry = tasks if isinstance(tasks, TaskRegistry) else a_registry(tasks)
        log = LogRecorder()
        names = {name for name in WorkerSettings.__dataclass_fields__ if name in options}
        settings = WorkerSettings(
            **{"poll_interval": ms(200), "grace_period": GRACE, **{name: options.pop(name) for name in names}}
        )
        if url is None and self.is_pooled:
            # As the guide recommends behind a pooler.
            options = {"listen_conninfo": self.direct, **options}
        runner = Runner(
            url or self.url,
            tasks=registry,
            settings=settings,
            logger=log.logger,
            handle_signals=False,
            migrate=False,
            **options,
        )
        return runner, EventRecorder(runner.events), log

    @contextmanager
    def running(self, tasks: TaskRegistry | dict[str, Function], **options: Any) -> Iterator[RunningWorker]:
        """Run until the block ends; then open all gates, stop, and wait."""
        running = RunningWorker(*self.runner(tasks, **options))
        running.start()
        try:
            yield running
        finally:
            for gate in self._gates:
                gate.open()
            running.runner.stop("the test is over")
            running.join(DEADLINE)
        assert running.result is not None, "the runner did not end"

    def run_once(self, tasks: TaskRegistry | dict[str, Function], **options: Any) -> RunResult:
        """Run until nothing is left, in a thread, so that a run that never ends fails the test."""
        runner, _, _ = self.runner(tasks, **options)
        return in_time(runner.run_once)


def a_registry(tasks: dict[str, Function]) -> TaskRegistry:
    registry = TaskRegistry()
    for name, function in tasks.items():
        registry.register(name, function)
    return registry


Result = TypeVar("Result")


def in_time(function: Callable[[], Result], deadline: float = DEADLINE) -> Result:
    """Return what the function returns, or fail when it takes too long."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(deadline)
    if errors:
        raise errors[0]
    assert results, f"not done within {deadline:g} s"
    return results[0]


class RunRecord:
    """What ran, in order: each entry is a payload's `n`."""

    def __init__(self) -> None:
        self.entries: list[Any] = []

    def __call__(self, payload: Any) -> None:
        self.entries.append(payload["n"])


def of_jobs(events: Sequence[Any]) -> list[int]:
    return [event.job.id for event in events]
