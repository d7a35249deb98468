"""Ask the database what a selection needs to know before it becomes SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gw_core.postgres.connection.statements import quoted
from gw_core.selection.kinds import Resolved
from gw_core.selection.selection import Selection


def values_of(selection: Selection, schema: str) -> dict[str, Any]:
    """Return the values of `selection_names.sql`."""
    tasks, task_prefixes = selection.names("tasks")
    queues, queue_prefixes = selection.names("queues")
    return {
        "tasks": tasks,
        "task_prefixes": task_prefixes,
        "queues": queues,
        "queue_prefixes": queue_prefixes,
        "renewed_table": f"{quoted(schema)}._private_gw_renewed_locks",
    }


def resolved(row: Sequence[Any]) -> Resolved:
    """Return the answer of `selection_names.sql`."""
    now, tasks, queues, *others = row
    return Resolved(now, json.loads(tasks), json.loads(queues), *others)
