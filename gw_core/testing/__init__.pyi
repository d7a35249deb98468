from gw_core.synchronous import Attempt as Attempt, ScratchDatabase as ScratchDatabase
from gw_core.testing.assertions import (
    assert_enqueued as assert_enqueued,
    enqueued as enqueued,
    refute_enqueued as refute_enqueued,
)
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
from gw_core.testing.schema import install as install
