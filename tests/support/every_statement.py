"""Every statement of sql/queries, prepared on a connection of a test's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.pq import ExecStatus

from gw_core.front_ends import HISTORY_TERMS, TERMS, Resolved
from gw_core.postgres.connection.statements import query, sql_folder
from gw_core.selection import parse

SCHEMA: Final = "graphile_worker"
CITUS: Final = "doctor_distributed_tables"
"""Cannot even be parsed where Citus is not installed."""
STATEMENTS: Final = sorted({path.stem for path in Path(str(sql_folder()), "queries").glob("*.sql")} - {CITUS})

HISTORY: Final = ("list_history", "count_history")
EVERY_TERM: Final = parse(
    " ".join([*(term.example for term in TERMS.values()), "payload:anywhere", "flag:b*", "job_key:w*", "-queue:none"])
).sql(Resolved(now=datetime.now(UTC), tasks={"mail": 1}, queues={"reports": 1}))
"""A selection with every condition."""
EVERY_HISTORY_TERM: Final = parse(
    " ".join([*(term.example for term in HISTORY_TERMS.values()), "task:a,b*", "result:any"]), HISTORY_TERMS
).sql(Resolved(now=datetime.now(UTC)))

NEIGHBOURS: Final = """
create table graphile_worker._private_workers (
  id text primary key, started_at timestamptz, last_heartbeat_at timestamptz, metadata jsonb
);
create function graphile_worker.worker_deregister(text) returns void language sql as '';
create function graphile_worker.worker_heartbeat(text, json) returns void language sql as '';
"""
"""What graphile_worker_rs adds to the schema; some statements use it."""


def prepare(connection: psycopg.Connection[Any], names: Iterable[str] = STATEMENTS) -> None:
    """Prepare these statements, each under its own name."""
    for name in names:
        selection = EVERY_HISTORY_TERM if name in HISTORY else EVERY_TERM
        text = query(name, SCHEMA, SELECTION=selection.text)
        for number, value in enumerate(sorted(set(re.findall(r"%\((\w+)\)[sb]", text))), 1):
            text = re.sub(rf"%\({value}\)[sb]", f"${number}", text)  # type: ignore[assignment] # as sent
        result = connection.pgconn.prepare(name.encode(), text.replace("%%", "%").encode())
        assert result.status == ExecStatus.COMMAND_OK, f"{name}: {result.error_message.decode()}"
