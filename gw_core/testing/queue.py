"""A queue for tests, in a database of its own."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from gw_core import Client, Job, TaskRegistry
from gw_core.runner.synchronous import ScratchDatabase
from gw_core.testing import assertions
from gw_core.testing.assertions import WantedTask
from gw_core.testing.clock import Clock
from gw_core.testing.running import DrainResult, drain


class Queue:
    """The value of the fixture `gw`: an empty queue, a client for it, a clock, and the functions of `gw_core.testing`.

    Its jobs are committed, so that other connections and processes see them. The fixture deletes them after the test.

    Example: docs/api/testing.md
    """

    def __init__(self, database: ScratchDatabase, tasks: TaskRegistry) -> None:
        self._database = database
        self.tasks = tasks
        """The tasks that `drain` runs."""
        self.clock = Clock()
        """The time for `client` and `drain`."""

    @property
    def url(self) -> str:
        """The database, as a URL for any driver."""
        return self._database.url

    @property
    def schema(self) -> str:
        """The schema of the queue."""
        return self._database.schema

    @cached_property
    def client(self) -> Client:
        """A client for the queue."""
        return Client(self.url, schema=self.schema, plugins=[self.clock.plugin], max_pool_size=2)

    @cached_property
    def connection(self) -> Any:
        """A psycopg connection in autocommit mode, with the settings of a worker's connections for tasks."""
        return self._database.connect()

    def drain(self, conn: object | None = None, **options: Any) -> DrainResult:
        """Run the jobs that are due, on `conn` or the connection of the queue; the options are those of `drain`."""
        defaults: dict[str, Any] = {"tasks": self.tasks, "schema": self.schema, "now": self.clock}
        return drain(self.connection if conn is None else conn, **{**defaults, **options})

    def enqueued(self, task: WantedTask | None = None) -> list[Job]:
        """Return the waiting jobs."""
        return assertions.enqueued(self.connection, task, schema=self.schema)

    def assert_enqueued(self, task: WantedTask, *payload: Any, **conditions: Any) -> list[Job]:
        """Assert that a job like this is waiting; see `gw_core.testing.assert_enqueued`."""
        __tracebackhide__ = True
        return assertions.assert_enqueued(self.connection, task, *payload, **self._timed(conditions))

    def refute_enqueued(self, task: WantedTask, *payload: Any, **conditions: Any) -> None:
        """Assert that no job like this is waiting; see `gw_core.testing.refute_enqueued`."""
        __tracebackhide__ = True
        assertions.refute_enqueued(self.connection, task, *payload, **self._timed(conditions))

    def _timed(self, conditions: dict[str, Any]) -> dict[str, Any]:
        now = {"now": self.clock} if self.clock.is_set else {}
        return {"schema": self.schema, **now, **conditions}

    def close(self) -> None:
        """Delete everything in the queue and close the connections."""
        self._database.empty(self.connection)
        self.connection.close()
        self.client.close()
