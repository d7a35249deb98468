"""Say that this pool lives, as long as it does."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.events import Events, HeartbeatFailed, HeartbeatLate, HeartbeatRestored
from gw_core.postgres.connections import OneConnection
from gw_core.postgres.workers import with_workers
from gw_core.service import Service
from gw_core.version import __version__

TRY_AGAIN_AFTER: Final = timedelta(seconds=2)
"""How soon a failed heartbeat is repeated: others count from the last one that was heard."""

A_MOMENT: Final = timedelta(seconds=0.1)
"""What taking the heartbeat away may take in any case."""


class Heartbeat(Service):
    """Writes a heartbeat at once and then every so often; tells when it was silent for longer than others tolerate.

    Each one looks whether somebody wants jobs of the pool cancelled, which calls `on_wish`.
    One for which `wants_echo` says so sends an echo to all who listen; `on_echo` is told when, by the steady clock.
    With `first_after` none is written before that long has passed: a short run needs none.

    All state belongs to the thread that calls `turn`; the first `beat` comes before that thread starts. It beats on
    while the pool stops, which may take long.
    """

    def __init__(
        self,
        *,
        pool: str,
        connection: OneConnection,
        events: Events,
        every: timedelta,
        tolerated: timedelta,
        metadata: Callable[[], Mapping[str, Any]],
        first_after: timedelta = timedelta(0),
        wants_echo: Callable[[], bool] = lambda: False,
        on_echo: Callable[[float], None] = lambda sent_at: None,
        on_wish: Callable[[], None] = lambda: None,
        on_crash: Callable[[str, BaseException], None] | None = None,
    ) -> None:
        super().__init__("gw-heartbeat", on_crash=on_crash)
        self._pool = pool
        self._connection = connection
        self._events = events
        self._every = every
        self._tolerated = tolerated
        self._metadata = metadata
        self._first_after = first_after
        self._wants_echo = wants_echo
        self._on_echo = on_echo
        self._on_wish = on_wish
        self._began = time.monotonic()
        self._last_beat: float | None = None
        self._has_rust_workers = False
        self._failures = 0
        self._is_orderly_end = False

    def turn(self) -> timedelta:
        """Write a heartbeat; rest until the next."""
        if self._last_beat is None and (left := self._first_after - self._lived()) > timedelta(0):
            return left
        # The first of a lasting worker was written before its pool began to claim.
        if self._last_beat is None or self._age() >= self._every:
            return self.beat()
        return self._every - self._age()

    def beat(self) -> timedelta:
        """Write a heartbeat now; return how long to rest."""
        try:
            self._write()
        except GraphileWorkerError as error:
            self._tell_failure(error)
            return min(self._every, TRY_AGAIN_AFTER)
        return self._every

    def end(self, *, in_order: bool, time_left: Callable[[], timedelta]) -> None:
        """Beat no more, and after an orderly end take the heartbeat away, as long as there is time left for it."""
        self._is_orderly_end = in_order
        self.ask_to_stop()
        self.join_until(time_left, at_least=A_MOMENT)

    def leave(self) -> None:
        """Take the heartbeat away; a database that cannot be reached keeps it, and a sweep will find it."""
        if not self._is_orderly_end or self._last_beat is None:
            return
        try:
            with_workers(
                self._connection,
                lambda store: store.forget_heartbeat(self._pool, has_rust_workers=self._has_rust_workers),
            )
        except GraphileWorkerError as error:
            self._tell_failure(error)

    def _write(self) -> None:
        echo, sent_at = self._wants_echo(), time.monotonic()
        beat = with_workers(
            self._connection,
            lambda store: store.heartbeat(
                self._pool,
                alive_for=self._lived(),
                host=socket.gethostname(),
                pid=os.getpid(),
                version=__version__,
                metadata=self._metadata(),
                echo=echo,
            ),
        )
        if echo:
            self._on_echo(sent_at)
        if beat.has_wishes:
            self._on_wish()
        self._has_rust_workers = beat.has_rust_workers
        self._tell_lateness(beat.silent_for)
        self._last_beat = time.monotonic()
        if self._failures:
            self._events.emit(HeartbeatRestored(pool=self._pool, attempts=self._failures))
            self._failures = 0

    def _tell_lateness(self, silent_for: timedelta | None) -> None:
        if self._last_beat is None:
            return
        if silent_for is None:
            # Somebody deleted the row: a sweep took us for dead, and our jobs with it.
            self._events.emit(
                HeartbeatLate(pool=self._pool, silent_for=timedelta(seconds=self._age_seconds()), presumed_dead=True)
            )
        elif silent_for > self._tolerated:
            self._events.emit(HeartbeatLate(pool=self._pool, silent_for=silent_for, presumed_dead=False))

    def _tell_failure(self, error: GraphileWorkerError) -> None:
        if not self._failures:
            self._events.emit(HeartbeatFailed(pool=self._pool, error=error))
        self._failures += 1

    def _lived(self) -> timedelta:
        return timedelta(seconds=time.monotonic() - self._began)

    def _age(self) -> timedelta:
        return timedelta(seconds=self._age_seconds())

    def _age_seconds(self) -> float:
        return 0.0 if self._last_beat is None else time.monotonic() - self._last_beat
