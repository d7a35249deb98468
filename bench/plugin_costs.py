"""`python -m bench.plugin_costs`: the processor time that a plugin takes for each run of a job, without a database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Final

import sentry_sdk
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from gw_core import Events, Job, Plugin
from gw_core.contrib.opentelemetry import OpenTelemetry
from gw_core.contrib.sentry import Sentry
from gw_core.domain.rules.plugins import Interceptors, run_wrapped
from gw_core.events import JobCompleted, JobSucceeded

RUNS: Final = 5_000
ROUNDS: Final = 7
CONTEXT: Final = SimpleNamespace(worker_id="gw-bench", thread_name=threading.current_thread().name, trace=None)
TRACE: Final = (
    '{"_trace": {"flags": 1, "trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331",'
    ' "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}'
)


class Discard(Transport):
    """Send nothing to Sentry."""

    def capture_envelope(self, envelope: Envelope) -> None:
        """Forget what the SDK would send."""


def main() -> None:
    """Print the microseconds of each plugin beside a run without plugins."""
    sentry_sdk.init("https://key@localhost/1", transport=Discard, default_integrations=False)
    alone = {payload: least_microseconds(None, payload) for payload in ("{}", TRACE)}
    for name, (make, payload) in plugins().items():
        print(f"{name:45} {least_microseconds(make(), payload) - alone[payload]:7.1f} us")


def plugins() -> Mapping[str, tuple[Callable[[], Plugin], str]]:
    """Return how to make each plugin, and the payload of its jobs."""
    return {
        "OpenTelemetry, no provider": (OpenTelemetry, "{}"),
        "OpenTelemetry, no provider, job with _trace": (OpenTelemetry, TRACE),
        "OpenTelemetry, SDK without exporter": (with_sdk, "{}"),
        "Sentry, tracing off": (Sentry, "{}"),
        "Sentry, run not sampled": (lambda: tracing(0.0), "{}"),
        "Sentry, run sampled": (lambda: tracing(1.0), "{}"),
    }


def with_sdk() -> Plugin:
    """Return the plugin with providers that record and export nothing."""
    return OpenTelemetry(tracer_provider=TracerProvider(), meter_provider=MeterProvider(shutdown_on_exit=False))


def tracing(rate: float) -> Plugin:
    """Return the plugin with an SDK that samples such a share of the runs."""
    sentry_sdk.init("https://key@localhost/1", transport=Discard, default_integrations=False, traces_sample_rate=rate)
    return Sentry()


def least_microseconds(plugin: Plugin | None, payload: str) -> float:
    """Return the processor time of one run and its events, in the fastest of some rounds."""
    events = Events()
    interceptors = Interceptors.attached([plugin] if plugin else [], events)
    job = Job(1, "work", payload, 1, 25, 0, 0.0, 0.0, 0.0, 1, _locked_at=0.0, locked_by="gw-bench")
    ended = JobSucceeded(worker_id="gw-bench", thread=CONTEXT.thread_name, job=job, seconds=0.001)
    settled = JobCompleted(worker_id="gw-bench", job=job, error=None)

    def seconds() -> float:
        began = time.thread_time()
        for _ in range(RUNS):
            run_wrapped(interceptors.around_run, job, CONTEXT, int)
            events.emit(ended)
            if events.wants(JobCompleted):
                events.emit(settled)
        return time.thread_time() - began

    return min(seconds() for _ in range(ROUNDS)) / RUNS * 1e6


if __name__ == "__main__":
    main()
