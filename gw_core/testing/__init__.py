"""Test code that adds jobs, and the tasks that run them.

- `perform` runs one task without a database, `inline` runs jobs where they are added
- `drain` runs the jobs that a test's own transaction sees, on its connection and thread
- `assert_enqueued`, `refute_enqueued` and `enqueued` check the jobs that were added
- `AsyncQueue` has these functions for tests on an event loop
- `Clock` is a time that tests set
- `Queue` is the value of the fixture `gw`
- `install` makes the schema ready in a test database

No name here needs pytest; fixtures are in `gw_core.testing.pytest_plugin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

# Late, as for gw_core itself: pytest imports the package for its plugin in every run.
if TYPE_CHECKING:
    from gw_core.runner.synchronous import Attempt as Attempt, ScratchDatabase as ScratchDatabase, install as install
    from gw_core.testing.assertions import (
        assert_enqueued as assert_enqueued,
        enqueued as enqueued,
        refute_enqueued as refute_enqueued,
    )
    from gw_core.testing.async_queue import AsyncQueue as AsyncQueue
    from gw_core.testing.clock import Clock as Clock
    from gw_core.testing.queue import Queue as Queue
    from gw_core.testing.running import (
        DrainLimitError as DrainLimitError,
        DrainResult as DrainResult,
        FailedAttempt as FailedAttempt,
        drain as drain,
        inline as inline,
        perform as perform,
    )
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.runner.synchronous: Attempt ScratchDatabase install
        gw_core.testing.assertions: assert_enqueued enqueued refute_enqueued
        gw_core.testing.async_queue: AsyncQueue
        gw_core.testing.clock: Clock
        gw_core.testing.queue: Queue
        gw_core.testing.running: DrainLimitError DrainResult FailedAttempt drain inline perform
        """,
    )
