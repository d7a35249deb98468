"""add_job: one job, with or without a key."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg import errors as pg
from psycopg.types.json import Json
from support.schema_fixture import SchemaFixture

TOMORROW = datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = datetime(2099, 6, 7, 8, 9, 10, tzinfo=UTC)
KEYED_MODES = ["replace", "preserve_run_at", "unsafe_dedupe"]


def test_a_job_with_nothing_but_a_task_gets_the_defaults(schema: SchemaFixture) -> None:
    job = schema.add_job("mail")

    assert schema.task_of(job) == "mail"
    defaults = {"payload": {}, "priority": 0, "attempts": 0, "max_attempts": 25, "revision": 0, "is_available": True}
    assert {name: job[name] for name in defaults} == defaults
    for column in ("job_queue_id", "key", "flags", "last_error", "locked_at", "locked_by"):
        assert job[column] is None
    assert job["run_at"] == job["created_at"] == job["updated_at"]


def test_every_argument_reaches_its_column(schema: SchemaFixture) -> None:
    job = schema.add_job(
        "mail",
        payload={"to": "bobby"},
        queue_name="outbox",
        run_at=TOMORROW,
        max_attempts=3,
        job_key="bobby",
        priority=-7,
        flags=["a", "b"],
    )

    assert schema.queue_of(job) == "outbox"
    expected = {
        "payload": {"to": "bobby"},
        "run_at": TOMORROW,
        "max_attempts": 3,
        "key": "bobby",
        "priority": -7,
        "flags": {"a": True, "b": True},
    }
    assert {name: job[name] for name in expected} == expected


def test_the_row_answered_is_the_row_stored(schema: SchemaFixture) -> None:
    assert schema.add_job("mail", job_key="a") == schema.jobs()[0]


def test_tasks_and_queues_known_already_use_up_no_numbers(schema: SchemaFixture) -> None:
    for _ in range(3):
        schema.add_job("mail", queue_name="outbox")
        schema.add_job("mail", queue_name="outbox", job_key="k", job_key_mode="unsafe_dedupe")

    schema.add_job("other", queue_name="other")

    assert [row["id"] for row in schema.run("select id from :S._private_tasks order by id")] == [1, 2]
    assert [row["id"] for row in schema.run("select id from :S._private_job_queues order by id")] == [1, 2]


def test_no_flags_and_an_empty_list_of_flags_are_the_same(schema: SchemaFixture) -> None:
    assert schema.add_job("mail", flags=[])["flags"] is None


# -- keys


def test_replace_overwrites_a_waiting_job(schema: SchemaFixture) -> None:
    first = schema.add_job("mail", payload={"n": 1}, queue_name="one", run_at=TOMORROW, job_key="k", flags=["old"])

    second = schema.add_job("sms", payload={"n": 2}, run_at=LATER, job_key="k", priority=3, max_attempts=4)

    assert second["id"] == first["id"]
    assert schema.task_of(second) == "sms"
    expected = {
        "payload": {"n": 2},
        "run_at": LATER,
        "priority": 3,
        "max_attempts": 4,
        "revision": 1,
        "flags": None,
        "job_queue_id": None,
    }
    assert {name: second[name] for name in expected} == expected
    assert len(schema.jobs()) == 1


@pytest.mark.parametrize("mode", ["replace", None], ids=["asked for", "null, which means the same"])
def test_replace_takes_the_new_time(schema: SchemaFixture, mode: str | None) -> None:
    schema.add_job(run_at=TOMORROW, job_key="k")

    assert schema.add_job(run_at=LATER, job_key="k", job_key_mode=mode)["run_at"] == LATER


def test_preserve_run_at_keeps_the_time_and_takes_the_rest(schema: SchemaFixture) -> None:
    schema.add_job(run_at=TOMORROW, job_key="k", payload={"n": 1})

    job = schema.add_job(run_at=LATER, job_key="k", payload={"n": 2}, job_key_mode="preserve_run_at")

    assert (job["run_at"], job["payload"], job["revision"]) == (TOMORROW, {"n": 2}, 1)


def test_preserve_run_at_takes_the_new_time_of_a_job_that_failed_before(schema: SchemaFixture) -> None:
    first = schema.add_job(run_at=TOMORROW, job_key="k")
    schema.change(first, attempts=1, last_error="broken")

    job = schema.add_job(run_at=LATER, job_key="k", job_key_mode="preserve_run_at")

    assert (job["id"], job["run_at"], job["attempts"], job["last_error"]) == (first["id"], LATER, 0, None)


def test_replacing_a_job_that_failed_before_starts_it_again(schema: SchemaFixture) -> None:
    first = schema.add_job(job_key="k")
    schema.change(first, attempts=7, last_error="broken")

    job = schema.add_job(job_key="k")

    assert (job["id"], job["attempts"], job["last_error"]) == (first["id"], 0, None)


@pytest.mark.parametrize("mode", ["replace", "preserve_run_at"])
def test_a_running_job_gives_up_its_key_to_a_new_one_and_is_retired(schema: SchemaFixture, mode: str) -> None:
    running = schema.add_job(job_key="k", payload={"n": 1}, run_at=TOMORROW)
    schema.claim(running)

    added = schema.add_job(job_key="k", payload={"n": 2}, run_at=LATER, job_key_mode=mode)

    assert added["id"] != running["id"]
    assert (added["key"], added["payload"], added["revision"], added["run_at"]) == ("k", {"n": 2}, 0, LATER)
    retired = schema.job(running["id"])
    assert retired is not None
    assert (retired["key"], retired["attempts"], retired["locked_by"]) == (None, 25, "pool-theirs")


def test_a_job_that_failed_permanently_stays_visible_without_its_key(schema: SchemaFixture) -> None:
    failed = schema.add_job(job_key="k")
    schema.fail_permanently(failed)

    added = schema.add_job(job_key="k")

    assert added["id"] != failed["id"]
    left = schema.job(failed["id"])
    assert left is not None
    assert (left["key"], left["last_error"], left["is_available"]) == (None, "broken", False)


@pytest.mark.parametrize(
    ("old", "new", "stored"),
    [
        pytest.param([1, 2], [3], [1, 2, 3], id="two arrays are joined"),
        pytest.param([1], [], [1], id="an empty array adds nothing"),
        pytest.param([1], {"n": 2}, {"n": 2}, id="an object replaces an array"),
        pytest.param({"n": 1}, [2], [2], id="an array replaces an object"),
        pytest.param({"n": 1}, {"m": 2}, {"m": 2}, id="an object replaces an object"),
        pytest.param([1], None, {}, id="no payload replaces an array"),
    ],
)
@pytest.mark.parametrize("mode", ["replace", "preserve_run_at"])
def test_arrays_are_gathered_and_anything_else_is_replaced(
    schema: SchemaFixture, mode: str, old: Any, new: Any, stored: Any
) -> None:
    schema.add_job(job_key="k", payload=Json(old))

    job = schema.add_job(job_key="k", payload=None if new is None else Json(new), job_key_mode=mode)

    assert job["payload"] == stored


def test_the_array_of_a_running_job_is_not_taken_over(schema: SchemaFixture) -> None:
    schema.claim(schema.add_job(job_key="k", payload=Json([1])))

    assert schema.add_job(job_key="k", payload=Json([2]))["payload"] == [2]


@pytest.mark.parametrize("state", ["waiting", "running", "failed for good"])
def test_unsafe_dedupe_leaves_the_existing_job_whatever_its_state(schema: SchemaFixture, state: str) -> None:
    first = schema.add_job(job_key="k", payload={"n": 1})
    {"waiting": lambda _: None, "running": schema.claim, "failed for good": schema.fail_permanently}[state](first)
    before = schema.jobs()[0]

    answered = schema.add_job("sms", job_key="k", payload={"n": 2}, job_key_mode="unsafe_dedupe")

    assert answered == {**before, "revision": 1, "updated_at": answered["updated_at"]}
    assert len(schema.jobs()) == 1


def test_unsafe_dedupe_adds_a_job_when_the_key_is_free(schema: SchemaFixture) -> None:
    job = schema.add_job(
        job_key="k", payload={"n": 1}, queue_name="q", run_at=TOMORROW, flags=["f"], job_key_mode="unsafe_dedupe"
    )

    assert schema.queue_of(job) == "q"
    assert (job["payload"], job["run_at"], job["flags"], job["revision"]) == ({"n": 1}, TOMORROW, {"f": True}, 0)


# -- notifications


@pytest.mark.parametrize("mode", KEYED_MODES)
def test_adding_a_job_notifies_the_workers_of_one(schema: SchemaFixture, mode: str) -> None:
    schema.listen()

    schema.add_job(job_key="k", job_key_mode=mode)

    (note,) = schema.notices()
    assert note["count"] == 1
    assert 0 <= note["r"] < 1


def test_workers_are_not_notified_when_unsafe_dedupe_adds_nothing(schema: SchemaFixture) -> None:
    schema.add_job(job_key="k")
    schema.listen()

    schema.add_job(job_key="k", job_key_mode="unsafe_dedupe")

    assert schema.notices() == []


# -- what is rejected


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param({"identifier": None}, pg.NotNullViolation, id="no task"),
        pytest.param({"identifier": "x" * 129}, pg.CheckViolation, id="a task too long"),
        pytest.param({"queue_name": "x" * 129}, pg.CheckViolation, id="a queue too long"),
        pytest.param({"job_key": "x" * 513}, pg.CheckViolation, id="a key too long"),
        pytest.param({"job_key": ""}, pg.CheckViolation, id="an empty key"),
        pytest.param({"max_attempts": 0}, pg.CheckViolation, id="no attempts"),
        pytest.param({"priority": 32768}, pg.NumericValueOutOfRange, id="a priority beyond smallint"),
        pytest.param({"max_attempts": 32768}, pg.NumericValueOutOfRange, id="attempts beyond smallint"),
        pytest.param(
            {"priority": 32768, "job_key": "k", "job_key_mode": "unsafe_dedupe"},
            pg.NumericValueOutOfRange,
            id="a priority beyond smallint with unsafe_dedupe",
        ),
    ],
)
def test_what_breaks_a_rule_is_rejected_and_nothing_is_stored(
    schema: SchemaFixture, arguments: dict[str, Any], error: type[psycopg.Error]
) -> None:
    with pytest.raises(error):
        schema.add_job(**{"identifier": "mail", **arguments})

    assert schema.jobs() == []


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"identifier": "x" * 128}, id="the longest task"),
        pytest.param({"queue_name": "x" * 128}, id="the longest queue"),
        pytest.param({"job_key": "x" * 512}, id="the longest key"),
        pytest.param({"priority": -32768}, id="the lowest priority"),
        pytest.param({"max_attempts": 1}, id="one attempt"),
        pytest.param({"queue_name": ""}, id="a queue without a name"),
    ],
)
def test_what_just_fits_is_stored(schema: SchemaFixture, arguments: dict[str, Any]) -> None:
    assert schema.add_job(**{"identifier": "mail", **arguments})["id"] is not None


def test_an_unknown_mode_is_rejected_with_a_key(schema: SchemaFixture) -> None:
    with pytest.raises(psycopg.Error, match="Invalid job_key_mode value") as caught:
        schema.add_job(job_key="k", job_key_mode="merge")

    assert caught.value.sqlstate == "GWBKM"


def test_an_unknown_mode_does_not_matter_without_a_key(schema: SchemaFixture) -> None:
    assert schema.add_job(job_key_mode="merge")["id"] is not None


@pytest.mark.parametrize("mode", KEYED_MODES)
def test_an_add_belongs_to_the_transaction_it_is_in(schema: SchemaFixture, mode: str) -> None:
    with schema.connection.transaction(force_rollback=True):
        schema.add_job(job_key="k", job_key_mode=mode)

    assert schema.jobs() == []


def test_a_trigger_of_any_table_can_add_jobs(schema: SchemaFixture) -> None:
    schema.run("create table public.users (name text)")
    schema.run(
        "create function public.welcome() returns trigger language plpgsql as $$ begin "
        "perform :S.add_job('welcome', json_build_object('name', new.name)); return new; end $$"
    )
    schema.run("create trigger welcome after insert on public.users for each row execute function public.welcome()")

    schema.run("insert into public.users values ('Bobby'), ('Alice')")

    assert [job["payload"] for job in schema.jobs()] == [{"name": "Bobby"}, {"name": "Alice"}]
