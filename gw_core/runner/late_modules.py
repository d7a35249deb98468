"""Load what a worker would load late: an upgrade can replace or delete its files while the worker runs."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

from gw_core.postgres.connection.statements import read_statements

OF_WORKER: Final = (
    "gw_core.execution.event_loop",
    "gw_core.postgres.connection.async_connection",
    "gw_core.postgres.read.dependency_results",
    "gw_core.postgres.road.step_store",
    "psycopg_pool",
)
"""What tasks and their contexts need; what these import comes with them."""

CLIENT: Final = "gw_core.clients.client"

OF_CLIENT: Final = (
    "gw_core.clients.cron",
    "gw_core.clients.groups",
    "gw_core.clients.history",
    "gw_core.clients.jobs",
    "gw_core.clients.limits",
    "gw_core.clients.pauses",
    "gw_core.clients.queues",
    "gw_core.clients.sharding",
    "gw_core.clients.tasks",
    "gw_core.clients.workers",
    "gw_core.domain.reports.table_sample",
    "gw_core.postgres.read.job_queries",
    "gw_core.postgres.read.job_results",
    "gw_core.postgres.read.snapshots",
    "gw_core.postgres.road.cancel_requests",
)
"""What its parts and methods need, apart from those for operators: cleanup, doctor, grants and migrations."""


def load_late_modules() -> None:
    """Read all statements and import late modules; those of the client only if a task has imported the client."""
    read_statements()
    for name in (*OF_WORKER, *(OF_CLIENT if CLIENT in sys.modules else ())):
        import_module(name)
