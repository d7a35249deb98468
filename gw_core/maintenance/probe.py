"""What a supervisor asks of a worker process: does it live, does it take jobs, how much does it do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from gw_core.domain.durations import as_duration
from gw_core.domain.reports.health import PoolHealth, ProbeSettings
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import ProbeStarted
from gw_core.maintenance.metrics import Metrics, MetricsCollector, QueueSampler
from gw_core.maintenance.probe_server import HttpResponse, Page, WebServer, text_response
from gw_core.maintenance.readiness import Readiness
from gw_core.postgres.connection.connections import ConnectionSource

WAIT_FOR_SAMPLE: float = 0.5
"""Seconds a scrape waits for new numbers of the queue; then it gets those there are."""


class Probe:
    """Answers `/live`, `/ready` and, when asked for, `/metrics`, for as long as a runner runs.

    `start()` raises `InvalidSettingError` when the address is taken, the constructor when metrics are asked for and
    their package is not installed. No response contains a payload, an error's text or a connection string.
    """

    def __init__(
        self,
        settings: ProbeSettings,
        *,
        events: Events,
        vitals: Callable[[], PoolHealth | None],
        poll: timedelta,
        connections: ConnectionSource,
        on_crash: Callable[[str, BaseException], None],
    ) -> None:
        self._events = events
        self._readiness = Readiness(events, vitals=vitals, poll=poll)
        self._metrics: Metrics | None = None
        pages: dict[str, Page] = {"/live": self._live, "/ready": self._ready}
        if settings.metrics:
            self._sampler = QueueSampler(
                connections, events=events, every=as_duration("sample_interval", settings.sample_interval)
            )
            self._sampler.on_crash = on_crash
            self._metrics = Metrics(MetricsCollector(events), self._readiness, self._sampler)
            pages["/metrics"] = self._scrape
        self._server = WebServer("gw-probe", settings.host, settings.port, pages, guarded=("/metrics",))
        self._server.on_crash = on_crash

    @property
    def address(self) -> tuple[str, int] | None:
        """The host and port it listens on; None before the start."""
        return self._server.address

    def start(self) -> None:
        """Begin to answer; returns immediately."""
        self._server.start()
        if self._metrics is not None:
            self._sampler.start()
        assert self.address is not None  # noqa: S101 - started above
        host, port = self.address
        self._events.emit(ProbeStarted(host=host, port=port, metrics=self._metrics is not None))

    def stop(self) -> None:
        """Answer no more; may be called twice, or without a start."""
        self._server.request_stop()
        if self._metrics is not None:
            self._sampler.request_stop()
        self._server.join(timedelta(seconds=1))

    async def _live(self) -> HttpResponse:
        return text_response(200, "alive")

    async def _ready(self) -> HttpResponse:
        reason = self._readiness.why_not()
        return text_response(200, f"ready{self._readiness.note()}") if reason is None else text_response(503, reason)

    async def _scrape(self) -> HttpResponse:
        assert self._metrics is not None  # noqa: S101 - the page is there only with it
        if self._readiness.is_connected and not self._readiness.is_stopping:
            await self._sample()
        return HttpResponse(200, self._metrics.text(), self._metrics.content_type)

    async def _sample(self) -> None:
        self._sampler.ask()
        enough_at = asyncio.get_running_loop().time() + WAIT_FOR_SAMPLE
        while not self._sampler.is_fresh and asyncio.get_running_loop().time() < enough_at:
            await asyncio.sleep(0.005)
