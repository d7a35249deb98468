"""Whatever is done to the queue, one step after the other, our functions answer and leave what Node's do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from psycopg.types.json import Json
from support.databases import install_schema
from support.node_worker import NEWEST, node_worker
from support.profiles import scaled
from support.schema_fixture import Row, SchemaFixture, connected

pytestmark = pytest.mark.interop

CLOCK = {"created_at", "updated_at", "locked_at"}
TIMESTAMPS = [datetime(2099, month, 1, tzinfo=UTC) for month in (1, 2, 3)]
KEYS = ["a", "b", "c"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing done to a schema; it answers rows."""

    story: str
    do: Callable[[SchemaFixture], list[Row]]

    def __repr__(self) -> str:
        return self.story


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


payloads = maybe(st.lists(st.integers(0, 9), max_size=2) | st.dictionaries(st.sampled_from("xy"), st.integers(0, 9)))
specs = st.fixed_dictionaries(
    {"identifier": st.sampled_from(["mail", "sms"])},
    optional={
        "payload": payloads,
        "queue_name": maybe(st.sampled_from(["", "q", "r"])),
        "max_attempts": maybe(st.integers(0, 3)),
        "job_key": maybe(st.sampled_from(KEYS)),
        "priority": maybe(st.integers(-1, 1)),
        "flags": maybe(st.lists(st.sampled_from(["f", "g"]), max_size=2)),
    },
)
timed_specs = st.builds(lambda spec, run_at: {**spec, "run_at": run_at}, specs, st.sampled_from(TIMESTAMPS))
modes = st.sampled_from(["replace", "preserve_run_at", "unsafe_dedupe", "nonsense", None])
ids = st.lists(st.integers(1, 8), max_size=3)


def adding_one(spec: Row, mode: str | None) -> Step:
    arguments = {**spec, "payload": None if spec.get("payload") is None else Json(spec["payload"])}
    return Step(f"add_job({spec}, {mode})", lambda schema: schema.call("add_job", **arguments, job_key_mode=mode))


def adding_many(specs: list[Row], preserve_run_at: bool) -> Step:
    sent = [{**spec, "run_at": spec["run_at"].isoformat()} for spec in specs]
    return Step(f"add_jobs({specs})", lambda schema: schema.add_jobs(*sent, preserve_run_at=preserve_run_at))


def calling(function: str, **arguments: Any) -> Step:
    def do(schema: SchemaFixture) -> list[Row]:
        return sorted(schema.call(function, **arguments), key=lambda row: row.get("id") or 0)

    return Step(f"{function}({arguments})", do)


def claiming(hours: int) -> Step:
    text = (
        "update :S._private_jobs set attempts = attempts + 1, locked_by = 'pool', "
        f"locked_at = now() - interval '{hours} hours' "
        "where id = (select min(id) from :S._private_jobs where is_available) returning *"
    )
    return Step(f"claim {hours} hours ago", lambda schema: schema.run(text))


FAILING = Step(
    "fail what runs",
    lambda schema: schema.run(
        "update :S._private_jobs set locked_at = null, locked_by = null, last_error = 'broken' "
        "where id = (select min(id) from :S._private_jobs where locked_by is not null) returning *"
    ),
)

# Node makes the rows of one call in any order, and so gives them any ids: such a call comes last.
last_steps = st.builds(adding_many, st.lists(timed_specs, min_size=2, max_size=4), st.booleans())
steps = st.one_of(
    st.builds(adding_one, timed_specs, modes),
    st.builds(adding_many, st.lists(timed_specs, min_size=1, max_size=1), st.booleans()),
    st.builds(lambda key: calling("remove_job", job_key=key), st.sampled_from(KEYS)),
    st.builds(lambda found: calling("complete_jobs", job_ids=found), ids),
    st.builds(
        lambda found, why: calling("permanently_fail_jobs", job_ids=found, error_message=why),
        ids,
        maybe(st.just("no use")),
    ),
    st.builds(
        lambda found, attempts: calling("reschedule_jobs", job_ids=found, run_at=TIMESTAMPS[2], attempts=attempts),
        ids,
        maybe(st.integers(0, 2)),
    ),
    st.just(calling("force_unlock_workers", worker_ids=["pool"])),
    st.builds(claiming, st.sampled_from([0, 9])),
    st.just(FAILING),
)


@pytest.fixture
def both(empty_database_url: str) -> str:
    node_worker(NEWEST).install_schema(empty_database_url, "nodes")
    install_schema(empty_database_url, "ours")
    return empty_database_url


def test_any_sequence_of_steps_gives_the_same_answers_and_rows(both: str) -> None:
    with connected(both, "nodes") as nodes, connected(both, "ours") as ours:
        for schema in (nodes, ours):
            schema.run("set synchronous_commit = off")

        @settings(max_examples=scaled(100), deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(st.lists(steps, min_size=1, max_size=10), last_steps)
        def holds(sequence: list[Step], last: Step) -> None:
            for schema in (nodes, ours):
                empty(schema)
            for step in sequence:
                assert outcome(step, ours) == outcome(step, nodes), step
            assert comparable(ours.jobs()) == comparable(nodes.jobs())
            assert in_any_order(outcome(last, ours)) == in_any_order(outcome(last, nodes)), last
            assert in_any_order(comparable(ours.jobs())) == in_any_order(comparable(nodes.jobs()))

        holds()


def empty(schema: SchemaFixture) -> None:
    """Begin again; `truncate` would do, but makes new files that a server must sync, hundreds of times."""
    for table, sequence in (("jobs", "jobs_id_seq1"), ("tasks", "tasks_id_seq"), ("job_queues", "job_queues_id_seq")):
        schema.run(f"delete from :S._private_{table}")
        schema.run("select setval(%s, 1, false)", f"{schema.name}.{sequence}")


def in_any_order(found: list[Row] | str) -> list[str] | str:
    """What does not depend on the order of making, which also decides which of two errors comes first."""
    if isinstance(found, str):
        return "refused"
    sequential = {"id", "task_id", "job_queue_id"}
    return sorted(str({name: value for name, value in row.items() if name not in sequential}) for row in found)


def outcome(step: Step, schema: SchemaFixture) -> list[Row] | str:
    """What a step answers, or the code of the error it ends with."""
    try:
        with schema.connection.transaction():
            return comparable(step.do(schema))
    except psycopg.Error as error:
        return error.sqlstate or str(error)


def comparable(rows: list[Row]) -> list[Row]:
    """The rows without what the clock decides, but for whether a job is locked, or was changed since it was made."""
    return [
        {name: value for name, value in row.items() if name not in CLOCK}
        | {"changed": row.get("updated_at") != row.get("created_at"), "locked": row.get("locked_at") is not None}
        for row in rows
    ]
