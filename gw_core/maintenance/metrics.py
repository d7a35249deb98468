"""The content of `/metrics`: counted from events, read from the pool, and sampled from the queue."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec

from gw_core.domain.errors import DatabaseUnavailableError, GraphileWorkerError, InvalidSettingError
from gw_core.domain.reports.counters import OutcomeCounters, TaskCounters
from gw_core.domain.reports.query_results import HistoryStatus, QueueCounts
from gw_core.domain.reports.run_statistics import StatisticsStatus
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import JobsSettled, JobStarted, MaintenanceFailed, PoolConnectionLost
from gw_core.maintenance.readiness import Readiness
from gw_core.postgres.connection.connections import ConnectionSource
from gw_core.postgres.read.history import status_of
from gw_core.postgres.read.job_queries import JobQueries
from gw_core.postgres.read.statistics_queries import StatisticsQueries
from gw_core.runtime.service import Service
from gw_core.version import __version__

if TYPE_CHECKING:
    from prometheus_client import Metric

UNTIL_WOKEN: Final = timedelta(hours=1)

Status = TypeVar("Status")


class MetricInfo(msgspec.Struct, frozen=True):
    """A metric of `/metrics`; Prometheus adds `_total` to the name of a counter."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()


_TASK: Final = ("task",)

METRICS: Final[Mapping[str, MetricInfo]] = {
    metric.name: metric
    for metric in (
        MetricInfo("gw_jobs_completed", "counter", "Jobs completed.", _TASK),
        MetricInfo("gw_jobs_failed", "counter", "Attempts that failed.", _TASK),
        MetricInfo("gw_jobs_permanently_failed", "counter", "Jobs that failed permanently.", _TASK),
        MetricInfo("gw_jobs_returned", "counter", "Jobs returned to the queue, attempt not counted.", _TASK),
        MetricInfo(
            "gw_job_locks_lost",
            "counter",
            "Runs whose lock was lost, so their outcome was discarded or is unknown.",
            _TASK,
        ),
        MetricInfo("gw_job_duration_seconds", "histogram", "Duration of attempts.", _TASK),
        MetricInfo("gw_job_start_delay_seconds", "histogram", "Delay between run_at and the start.", _TASK),
        MetricInfo("gw_info", "gauge", "The version of gw.", ("version",)),
        MetricInfo("gw_ready", "gauge", "Whether this worker claims jobs."),
        MetricInfo("gw_connected", "gauge", "Whether claiming and settling succeed."),
        MetricInfo("gw_connection_losses", "counter", "Lost connections to the database."),
        MetricInfo("gw_threads", "gauge", "Worker threads."),
        MetricInfo("gw_jobs_running", "gauge", "Running jobs."),
        MetricInfo("gw_jobs_prefetched", "gauge", "Claimed jobs that have not started."),
        MetricInfo("gw_results_pending", "gauge", "Results not yet stored in the database."),
        MetricInfo("gw_last_claim_age_seconds", "gauge", "Time since the last successful claim."),
        MetricInfo("gw_queue_jobs", "gauge", "Jobs by state; an estimate for large tables.", ("state",)),
        MetricInfo("gw_queue_longest_wait_seconds", "gauge", "Time since the oldest ready job became due."),
        MetricInfo("gw_queue_named_queues", "gauge", "Named queues."),
        MetricInfo("gw_queue_named_queues_locked", "gauge", "Locked named queues."),
        MetricInfo("gw_queue_paused", "gauge", "1 for each paused task, queue, flag or recurring task.", ("target",)),
        MetricInfo("gw_queue_history_rows", "gauge", "Ended attempts in history, an estimate above 10,000."),
        MetricInfo("gw_queue_history_bytes", "gauge", "Size of history with its indexes."),
        MetricInfo("gw_queue_history_rows_without_partition", "gauge", "Rows that wait for a partition."),
        MetricInfo("gw_queue_history_expired_partitions", "gauge", "Expired partitions that are still there."),
        MetricInfo("gw_queue_statistics_bytes", "gauge", "Size of the statistics with their index."),
        MetricInfo("gw_queue_statistics_age_seconds", "gauge", "Age of the last minute with statistics."),
        MetricInfo("gw_queue_statistics_workers", "gauge", "Live workers that record statistics."),
        MetricInfo("gw_queue_limit", "gauge", "How many jobs of a limited task may be locked.", _TASK),
        MetricInfo("gw_queue_groups_waiting", "gauge", "Jobs that wait for others."),
        MetricInfo("gw_queue_limit_locked", "gauge", "Locked jobs of a limited task.", _TASK),
        MetricInfo("gw_queue_table_bytes", "gauge", "Size of the jobs table with its indexes."),
        MetricInfo("gw_queue_sample_age_seconds", "gauge", "Age of the gw_queue metrics."),
    )
}
"""Every metric by its name. The metrics themselves, the dashboard and the alert rules are made from this table."""


class MetricsCollector:
    """Counts from the events of this process.

    Starts are noted by worker threads in a deque, whose ends are thread-safe, and counted by the thread that holds
    `_lock`, which guards the tally: at tens of thousands of jobs a second a lock for each start would be felt.
    """

    def __init__(self, events: Events) -> None:
        self._lock = threading.Lock()
        self._tally = OutcomeCounters()
        self._starts: deque[tuple[str, float]] = deque()
        self.connection_losses = 0
        events.on(JobStarted, self._started)
        events.on(JobsSettled, self._settled)
        events.on(PoolConnectionLost, self._connection_lost)

    def read(self) -> Iterator[tuple[str, TaskCounters]]:
        """Yield each task with its tally, which stays as it is until the next is asked for."""
        with self._lock:
            self._count_starts()
            yield from sorted(self._tally.tasks.items())

    def _started(self, event: JobStarted) -> None:
        job = event.job
        due = max(job._run_at, job._created_at)
        self._starts.append((job.task, time.time() - due))

    def _settled(self, event: JobsSettled) -> None:
        with self._lock:
            self._count_starts()
            self._tally.settled(event.outcomes, event.lost)

    def _count_starts(self) -> None:
        self._tally.started(self._starts.popleft() for _ in range(len(self._starts)))

    def _connection_lost(self, event: PoolConnectionLost) -> None:
        self.connection_losses += not event.attempts


class QueueSample(msgspec.Struct, frozen=True):
    """What the queue was like, and when by our steady clock."""

    statistics: QueueCounts
    taken_at: float
    history: HistoryStatus | None = None
    """None when history could not be read."""
    recorded: StatisticsStatus | None = None
    """None when the statistics could not be read."""


class QueueSampler(Service):
    """Samples the queue when a scrape asks and the last sample is too old; reads a bounded part of the table."""

    def __init__(self, connections: ConnectionSource, *, events: Events, every: timedelta) -> None:
        super().__init__("gw-sample")
        self.latest: QueueSample | None = None
        schema = connections.database.schema
        self._reports = JobQueries(connections, schema)
        self._history = partial(status_of, connections, schema)
        self._recorded = StatisticsQueries(connections, schema)
        self._events = events
        self._every = every.total_seconds()
        self._sampled_at = float("-inf")
        self._is_asked = False
        self._refusal: str | None = None

    @property
    def is_fresh(self) -> bool:
        """True when the last sample, even a failed one, is recent enough."""
        return time.monotonic() - self._sampled_at < self._every

    def ask(self) -> None:
        """Request a sample, unless the last one is recent enough; from any thread."""
        if not self.is_fresh:
            self._is_asked = True
            self.wake()

    def step(self) -> timedelta:
        """Take a sample if one was requested; then wait for the next request."""
        is_asked, self._is_asked = self._is_asked, False
        if is_asked and not self.is_fresh:
            self._sample()
        return UNTIL_WOKEN

    def _sample(self) -> None:
        try:
            found = self._reports.counts()
            extras = self._if_allowed(self._history), self._if_allowed(self._recorded.status)
            self.latest = QueueSample(found, time.monotonic(), *extras)
            self._refusal = None
        except DatabaseUnavailableError:
            pass  # the worker reports it
        except GraphileWorkerError as error:
            self._report(error)
        self._sampled_at = time.monotonic()

    @staticmethod
    def _if_allowed(read: Callable[[], Status | None]) -> Status | None:
        try:
            return read()
        except GraphileWorkerError:  # a role without the right to read it still gets the other metrics
            return None

    def _report(self, error: GraphileWorkerError) -> None:
        if str(error) != self._refusal:
            self._refusal = str(error)
            self._events.emit(MaintenanceFailed(service=self.name, error=error))


class Metrics:
    """Everything as Prometheus reads it. Raises `InvalidSettingError` when its package is not installed."""

    def __init__(self, counting: MetricsCollector, readiness: Readiness, sampler: QueueSampler) -> None:
        self._client = _prometheus()
        self._counting = counting
        self._readiness = readiness
        self._sampler = sampler
        self._registry = self._client.CollectorRegistry()
        self._registry.register(self)
        self._client.ProcessCollector(registry=self._registry)

    @property
    def content_type(self) -> str:
        """The type of what `text` returns."""
        return str(self._client.CONTENT_TYPE_LATEST)

    def text(self) -> bytes:
        """Return all metrics, with whatever sample of the queue there is."""
        return bytes(self._client.generate_latest(self._registry))

    def collect(self) -> Iterator[Metric]:
        """Yield all families; called by the registry."""
        yield from self._of_jobs()
        yield from self._of_process()
        yield from self._of_queue()

    def describe(self) -> list[Metric]:
        """Return nothing: the registry need not ask for values to know our names."""
        return []

    def _of_jobs(self) -> Iterator[Metric]:
        counts = {
            "completed": self._family("gw_jobs_completed"),
            "failed": self._family("gw_jobs_failed"),
            "permanently_failed": self._family("gw_jobs_permanently_failed"),
            "returned": self._family("gw_jobs_returned"),
            "lost": self._family("gw_job_locks_lost"),
        }
        durations = {
            "duration": self._family("gw_job_duration_seconds"),
            "start_delay": self._family("gw_job_start_delay_seconds"),
        }
        for task, tally in self._counting.read():
            for name, family in counts.items():
                family.add_metric([task], getattr(tally, name))
            for name, family in durations.items():
                values = getattr(tally, name)
                family.add_metric([task], values.cumulative(), sum_value=values.total)
        yield from (*counts.values(), *durations.values())

    def _of_process(self) -> Iterator[Metric]:
        yield self._value("gw_info", 1, version=__version__)
        yield self._value("gw_ready", self._readiness.why_not() is None)
        yield self._value("gw_connected", self._readiness.is_connected)
        yield self._value("gw_connection_losses", self._counting.connection_losses)
        vitals = self._readiness.vitals()
        if vitals is None:
            return
        yield self._value("gw_threads", vitals.threads)
        yield self._value("gw_jobs_running", vitals.running)
        yield self._value("gw_jobs_prefetched", vitals.prefetched)
        yield self._value("gw_results_pending", vitals.unsettled)
        if vitals.since_poll is not None:
            yield self._value("gw_last_claim_age_seconds", vitals.since_poll.total_seconds())

    def _of_queue(self) -> Iterator[Metric]:
        sample = self._sampler.latest
        if sample is None:
            return
        found = sample.statistics
        jobs = self._family("gw_queue_jobs")
        for state, count in found.states.items():
            jobs.add_metric([str(state)], count.value)
        yield jobs
        waits = timedelta() if found.oldest_due_at is None else max(timedelta(), found.at - found.oldest_due_at)
        yield self._value("gw_queue_longest_wait_seconds", waits.total_seconds())
        yield self._value("gw_queue_named_queues", found.queues)
        yield self._value("gw_queue_named_queues_locked", found.locked_queues)
        paused = self._family("gw_queue_paused")
        for pause in found.pauses:
            paused.add_metric([str(pause.target)], 1.0)
        yield paused
        most, locked = self._family("gw_queue_limit"), self._family("gw_queue_limit_locked")
        for limit in found.limits:
            locked.add_metric([limit.task], float(limit.locked))
            if limit.running is not None:
                most.add_metric([limit.task], float(limit.running))
        yield from (most, locked)
        yield self._value("gw_queue_groups_waiting", found.waiting_groups)
        yield self._value("gw_queue_table_bytes", found.table_bytes)
        if sample.history is not None:
            yield self._value("gw_queue_history_rows", sample.history.rows.value)
            yield self._value("gw_queue_history_bytes", sample.history.size_bytes)
            yield self._value("gw_queue_history_rows_without_partition", sample.history.waiting_rows)
            yield self._value("gw_queue_history_expired_partitions", sample.history.expired_partitions)
        if (recorded := sample.recorded) is not None:
            yield self._value("gw_queue_statistics_bytes", recorded.size_bytes)
            yield self._value("gw_queue_statistics_workers", recorded.recording_workers)
            if recorded.latest_age is not None:
                yield self._value("gw_queue_statistics_age_seconds", recorded.latest_age.total_seconds())
        yield self._value("gw_queue_sample_age_seconds", time.monotonic() - sample.taken_at)

    def _family(self, name: str) -> Any:
        metric = METRICS[name]
        core = self._client.core
        kinds = {
            "counter": core.CounterMetricFamily,
            "gauge": core.GaugeMetricFamily,
            "histogram": core.HistogramMetricFamily,
        }
        return kinds[metric.kind](metric.name, metric.help, labels=list(metric.labels))

    def _value(self, name: str, value: float, **labels: str) -> Metric:
        family = self._family(name)
        family.add_metric(list(labels.values()), float(value))
        made: Metric = family
        return made


def _prometheus() -> Any:
    try:
        import prometheus_client  # in an extra, and loaded by those who measure
        import prometheus_client.core
    except ImportError as error:
        raise InvalidSettingError(
            "metrics need the package prometheus-client; install it with: pip install 'graphile-worker[metrics]'"
        ) from error
    return prometheus_client
