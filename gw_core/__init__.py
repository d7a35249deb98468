"""Graphile Worker for Python: add, run and manage jobs in PostgreSQL.

This package has the names that most programs use. The others are in five modules, each name in exactly one:

- `gw_core.events`: the events that `Events` delivers
- `gw_core.errors`: the exceptions
- `gw_core.crontab`: crontabs and schedules
- `gw_core.operations`: what tools for operators use: results of queries and actions, diagnosis, migrations, supervision
- `gw_core.selection`: parse, complete and explain selections of jobs

All other modules are internal. Each name is imported when it is first used, so `import gw_core` is fast.
The stub `__init__.pyi` lists the names; type checkers read it too.
"""

from __future__ import annotations

from gw_core.lazy import public_names
from gw_core.version import __version__ as __version__

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
