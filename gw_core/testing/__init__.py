"""Test code that adds jobs, and the tasks that run them.

- `perform` runs one task without a database, `inline` runs jobs where they are added
- `drain` runs the jobs that a test's own transaction sees, on its connection and thread
- `assert_enqueued`, `refute_enqueued` and `enqueued` check the jobs that were added
- `Clock` is a time that tests set
- `Queue` is the value of the fixture `gw`
- `install` makes the schema ready in a test database

No name here needs pytest; fixtures are in `gw_core.testing.pytest_plugin`.
"""

from __future__ import annotations

from gw_core.lazy import public_names

# Late, as for gw_core itself: pytest imports the package for its plugin in every run.
__getattr__, __dir__, __all__ = public_names(__name__, __file__)
