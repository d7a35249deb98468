"""The client: every entry point of the queue, and what it rejects."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

import msgspec
import psycopg
import pydantic
import pytest
from psycopg.rows import dict_row
from support.queue_fixture import QueueFixture

from gw_core import Client, JobKeyMode, JobSpec, ShardedClient
from gw_core.errors import DatabaseUnavailableError, InvalidInputError, InvalidJobError
from gw_core.front_ends import AuthenticationError, Database, NoConnectionError

NAIVE = datetime(2030, 1, 1)


class Zoneless(tzinfo):
    def utcoffset(self, timestamp: datetime | None) -> None:
        return None


@dataclasses.dataclass
class Measured:
    what: str
    value: float


class MeasuredStruct(msgspec.Struct):
    value: float


class MeasuredModel(pydantic.BaseModel):
    value: float | None


# -- what is rejected before anything is sent -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"task": ""}, "the task identifier is empty", id="empty identifier"),
        pytest.param({"task": "x" * 129}, "129 characters long; at most 128", id="long identifier"),
        pytest.param({"task": "a\0b"}, "cannot store", id="NUL in the identifier"),
        pytest.param({"task": "a\ud800"}, "cannot store", id="lone surrogate"),
        pytest.param({"task": None}, "must be a text, not NoneType", id="identifier that is no text"),
        pytest.param({"queue_name": ""}, "the queue name is empty", id="empty queue"),
        pytest.param({"queue_name": "q" * 129}, "at most 128", id="long queue"),
        pytest.param({"job_key": ""}, "the job key is empty", id="empty key"),
        pytest.param({"job_key": "k" * 513}, "at most 512", id="long key"),
        pytest.param({"max_attempts": 0}, "must lie between 1 and 32767", id="no attempts"),
        pytest.param({"max_attempts": 32_768}, "must lie between 1 and 32767", id="too many attempts"),
        pytest.param({"max_attempts": True}, "must be a whole number", id="attempts that are a truth value"),
        pytest.param({"max_attempts": "3"}, "must be a whole number", id="attempts as text"),
        pytest.param({"priority": 32_768}, "must lie between -32768 and 32767", id="priority beyond smallint"),
        pytest.param({"priority": -32_769}, "must lie between -32768 and 32767", id="priority below smallint"),
        pytest.param({"priority": 1.5}, "must be a whole number", id="half a priority"),
        pytest.param({"job_key_mode": "preserve_run_at"}, "without a job key", id="mode without key"),
        pytest.param(
            {"job_key_mode": "nonsense", "job_key": "k"},
            "'nonsense' is not a job key mode; give one of replace",
            id="unknown mode",
        ),
        pytest.param({"flags": "slow"}, "must be a list of names", id="flags as one text"),
        pytest.param({"flags": ["ok", ""]}, "the flag is empty", id="empty flag"),
        pytest.param({"flags": [1]}, "must be a text", id="flag that is a number"),
        pytest.param({"run_at": NAIVE}, "has no time zone", id="naive timestamp"),
        pytest.param({"run_at": datetime(2030, 1, 1, tzinfo=Zoneless())}, "has no time zone", id="zone without offset"),
        pytest.param({"run_at": date(2030, 1, 1)}, "run_at must be an aware datetime", id="day"),
        pytest.param({"run_at": "tomorrow"}, "run_at must be an aware datetime", id="timestamp as text"),
        pytest.param({"run_at": 5}, "run_at must be an aware datetime", id="seconds as a number"),
        pytest.param(
            {"run_at": timedelta(days=2_000_000)}, "2,000,000 days from now; at most 1,000,000", id="far future"
        ),
        pytest.param({"run_at": timedelta.min}, "999,999,999 days from now; at most", id="far past"),
        pytest.param({"payload": float("nan")}, "contains nan, which JSON cannot hold", id="NaN"),
        pytest.param({"payload": {"a": [1, None, {"b": float("inf")}]}}, "contains inf", id="Infinity deep inside"),
        pytest.param({"payload": (1.0, -float("inf"))}, "contains -inf", id="-Infinity in a tuple"),
        pytest.param({"payload": {float("inf")}}, "contains inf", id="Infinity in a set"),
        pytest.param({"payload": Measured("x", float("nan"))}, "contains nan", id="NaN in a dataclass"),
        pytest.param({"payload": [MeasuredStruct(float("nan"))]}, "contains nan", id="NaN in a struct"),
        pytest.param({"payload": MeasuredModel(value=float("nan"))}, "contains nan", id="NaN in a pydantic model"),
        pytest.param({"payload": {1, 2}} | {"payload": object()}, "cannot be written as JSON", id="payload not JSON"),
        pytest.param({"payload": {"a": "\0"}}, "\\u0000", id="NUL in the payload"),
        pytest.param({"payload": {"\0": 1}}, "\\u0000", id="NUL in a name of the payload"),
    ],
)
def test_a_wrong_job_is_rejected_with_its_reason_and_nothing_is_added(
    site: QueueFixture, fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidJobError) as rejected:
        site.client.add(**{"task": "work", **fields})
    with pytest.raises(InvalidJobError):
        site.client.add_many([JobSpec(task="fine"), JobSpec(**{"task": "work", **fields})])

    with pytest.raises(InvalidJobError):
        site.client.groups.add([JobSpec(task="fine")], then=JobSpec(**{"task": "work", **fields}))

    if isinstance(fields.get("payload"), list | tuple):
        with pytest.raises(InvalidJobError):
            site.client.add_batch("work", fields["payload"])

    assert reason in str(rejected.value)
    assert "\n" not in str(rejected.value)
    assert site.jobs() == []


@pytest.mark.parametrize(
    "fields",
    [
        {"task": "x" * 128},
        {"queue_name": "ü" * 128},
        {"job_key": "k" * 512},
        {"max_attempts": 32_767},
        {"priority": -32_768},
        {"priority": 32_767},
        {"payload": {"literal": "\\u0000"}},
        {"payload": {"text": "null NaN Infinity", "none": None, "big": 1e308}},
        {"payload": None},
        {"payload": [1, "two", None, 3.5, {"four": [True]}]},
        {"flags": ("a", "b")},
        {"run_at": timedelta(0)},
        {"run_at": datetime(1970, 1, 1, tzinfo=UTC)},
    ],
)
def test_what_lies_just_within_the_bounds_is_added(site: QueueFixture, fields: dict[str, Any]) -> None:
    job = site.client.add(**{"task": "work", **fields})

    assert job is not None
    assert job == site.client.jobs.get(job.id)
    assert job.payload == ({} if fields.get("payload") is None else fields["payload"])


@dataclasses.dataclass
class Parcel:
    to: str
    grams: int


def test_a_payload_may_be_a_dataclass(site: QueueFixture) -> None:
    job = site.client.add("work", Parcel("Bobby", 300))

    assert job is not None
    assert job.payload == {"to": "Bobby", "grams": 300}


# -- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [*JobKeyMode, *map(str, JobKeyMode)])
def test_a_mode_decides_what_an_add_does_to_the_job_with_its_key(site: QueueFixture, mode: JobKeyMode | str) -> None:
    timestamp = datetime(2035, 1, 1, tzinfo=UTC)
    first = site.add(payload={"n": 1}, job_key="k", priority=3, run_at=timestamp)
    job = site.client.add("other", {"n": 2}, queue_name="q", job_key="k", job_key_mode=mode)

    assert (job.task, job.queue_name) == (("work", None) if mode == "unsafe_dedupe" else ("other", "q"))
    assert (job.id, job.revision) == (first, 1)
    assert (job.payload, job.priority) == (({"n": 1}, 3) if mode == "unsafe_dedupe" else ({"n": 2}, 0))
    assert (site.client.jobs.list("task:work").jobs == ()) == (mode != "unsafe_dedupe")
    assert (job.run_at == timestamp) == (mode != "replace")


def test_batches_under_one_key_are_joined(site: QueueFixture) -> None:
    site.client.add_batch("work", [1, 2], job_key="k")
    job = site.client.add_batch("work", [3], job_key="k")

    assert job is not None
    assert job.payload == [1, 2, 3]


@pytest.mark.parametrize("items", [[], "text", b"bytes", {"a": 1, "b": 2}, {1, 2}, 5, None])
def test_a_batch_needs_items(site: QueueFixture, items: Any) -> None:
    with pytest.raises(InvalidJobError, match="at least one item"):
        site.client.add_batch("work", items)


@pytest.mark.parametrize(
    "specs", ["abc", 5, None, [{"task": "work"}], JobSpec(task="work"), [JobSpec(task="a"), "b"], [None]]
)
def test_several_jobs_are_given_as_specs(site: QueueFixture, specs: Any) -> None:
    last = JobSpec(task="last")
    sharded = ShardedClient({"one": site.client}, by=lambda spec: 1)

    for add in (site.client.add_many, lambda given: site.client.groups.add(given, then=last), sharded.add_many):
        with pytest.raises(InvalidJobError, match="a list of JobSpec"):
            add(specs)
    with pytest.raises(InvalidJobError, match="a list of JobSpec"):
        site.client.groups.add([last], then="last")  # type: ignore[arg-type]
    assert site.jobs() == []


# -- many -------------------------------------------------------------------------------------------------------------


def test_more_jobs_than_one_statement_takes_are_added(site: QueueFixture) -> None:
    ids = site.client.add_many(JobSpec(task="work", payload={"n": n}) for n in range(12_000))

    assert len(set(ids)) == 12_000
    assert site.run("select count(*) from _private_jobs") == [{"count": 12_000}]
    assert site.client.add_many([]) == []


def a_bulk_that_breaks_after(count: int, **options: Any) -> list[JobSpec]:
    """The last job cannot be stored, and only the database knows: its payload is not JSON."""
    good = [JobSpec(task="work", **{name: value(n) for name, value in options.items()}) for n in range(count)]
    return [
        *good,
        JobSpec(task="work", payload=msgspec.Raw(b"no JSON"), **{name: value(0) for name, value in options.items()}),
    ]


@pytest.mark.parametrize(
    ("count", "options"),
    [
        pytest.param(3, {}, id="in one statement"),
        pytest.param(5_001, {}, id="in statements of some thousands"),
        pytest.param(3, {"job_key": lambda n: "the same key"}, id="parted by keys"),
        pytest.param(
            3, {"job_key": lambda n: f"k{n}", "job_key_mode": lambda n: JobKeyMode.UNSAFE_DEDUPE}, id="one at a time"
        ),
    ],
)
@pytest.mark.parametrize("by_caller", [False, True], ids=["own connection", "caller's connection"])
def test_many_jobs_are_added_all_or_none(
    site: QueueFixture, count: int, options: dict[str, Callable[[int], Any]], by_caller: bool
) -> None:
    with psycopg.connect(site.url, autocommit=True) as conn, pytest.raises(Exception, match="type json"):
        site.client.add_many(a_bulk_that_breaks_after(count, **options), conn=conn if by_caller else None)

    assert site.jobs() == []


# -- the caller's own transaction -------------------------------------------------------------------------------------


def test_a_job_belongs_to_the_callers_transaction(site: QueueFixture) -> None:
    with psycopg.connect(site.url) as conn:
        site.client.add("work", conn=conn)
        site.client.add_many([JobSpec(task="work"), JobSpec(task="work", job_key="k")], conn=conn)
        assert site.jobs() == []
        conn.rollback()
        assert site.jobs() == []
        site.client.add("work", job_key="kept", conn=conn)
        site.client.remove("never there", conn=conn)
        conn.commit()

    assert [job["key"] for job in site.jobs()] == ["kept"]


def test_a_rejected_bulk_leaves_the_callers_transaction_usable(site: QueueFixture) -> None:
    with psycopg.connect(site.url) as conn:
        site.client.add("work", job_key="first", conn=conn)
        with pytest.raises(Exception, match="type json"):
            site.client.add_many(a_bulk_that_breaks_after(2, job_key=lambda n: f"k{n}"), conn=conn)
        site.client.add("work", job_key="second", conn=conn)
        conn.commit()

    assert [job["key"] for job in site.jobs()] == ["first", "second"]


def test_a_connection_with_rows_of_another_kind_will_do(site: QueueFixture) -> None:
    with psycopg.connect(site.url, row_factory=dict_row) as conn:
        job = site.client.add("work", {"n": 1}, conn=conn)
        assert job is not None
        assert site.client.add_many([JobSpec(task="work")], conn=conn)
        removed = site.client.remove("no such key", conn=conn)
        row = conn.execute("select 1 as one").fetchone()

    assert removed is None
    assert row == {"one": 1}
    assert len(site.jobs()) == 2


# -- queries and actions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0, -1, "1", True, 2**63, None])
def test_what_is_no_id_is_rejected(site: QueueFixture, wrong: Any) -> None:
    jobs = site.client.jobs
    for act in (jobs.complete, jobs.fail, jobs.reschedule, jobs.retry):
        with pytest.raises(InvalidJobError, match="not the id of a job"):
            act([wrong])


# -- the way to the database ------------------------------------------------------------------------------------------


def test_a_database_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "PGDATABASE", "PGHOST", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(NoConnectionError, match="--connection embedded:"):
        Client()
    # libpq would take the user's name for the database.
    monkeypatch.setenv("PGHOST", "127.0.0.1")
    with pytest.raises(NoConnectionError, match="PGHOST names only a server"):
        Client()


@pytest.mark.parametrize("is_variable", [False, True], ids=["given", "DATABASE_URL"])
def test_a_bare_name_is_a_database(site: QueueFixture, monkeypatch: pytest.MonkeyPatch, is_variable: bool) -> None:
    parts = psycopg.conninfo.conninfo_to_dict(site.url)
    for name, value in (("PGHOST", parts["host"]), ("PGPORT", parts["port"]), ("PGUSER", parts["user"])):
        monkeypatch.setenv(name, str(value))
    name = str(parts["dbname"])
    monkeypatch.setenv("DATABASE_URL", name if is_variable else "postgres://nowhere")

    with Client(None if is_variable else name) as client:
        job_id = client.add("work").id

    assert [found.job.id for found in site.client.jobs.list().jobs] == [job_id]


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        pytest.param("postgres://u:hunter2@127.0.0.1:1/d", DatabaseUnavailableError, id="nobody there"),
        pytest.param("postgres://u:hunter2@no.such.host.invalid/d", DatabaseUnavailableError, id="no such host"),
    ],
)
def test_an_unreachable_database_is_reported_without_the_password(url: str, kind: type[Exception]) -> None:
    with Client(url) as client, pytest.raises(kind) as caught:
        client.add("work")

    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(Database(url))


def test_a_database_that_does_not_exist_is_reported(site: QueueFixture) -> None:
    url = psycopg.conninfo.make_conninfo(site.url, dbname="gw_no_such_database")
    with Client(url) as client, pytest.raises(AuthenticationError, match="does not exist"):
        client.add("work")


def test_any_schema_name_works(own_site: QueueFixture) -> None:
    with Client(own_site.url, schema='odd "schema" 100%') as client:
        client.migrate()
        job = client.add("work", {"n": 1}, job_key="k")
        assert client.add_many([JobSpec(task="work")])
        assert job is not None
        assert client.jobs.get(job.id) == job
        assert own_site.jobs() == []


def test_a_client_with_one_connection_uses_one(site: QueueFixture) -> None:
    with Client(site.url, max_pool_size=1) as client:
        for _ in range(3):
            client.add("work")
        assert len(site.connections("gw")) == 1  # those of earlier tests have ended


# -- texts that PostgreSQL cannot store -------------------------------------------------------------------------------

TEXTS: dict[str, Callable[[Client, str], object]] = {
    "the error of a job": lambda client, text: client.jobs.fail([client.add("work").id], text),
    "the key to remove": lambda client, text: client.remove(text),
    "the key to show": lambda client, text: client.jobs.show(job_key=text),
    "the worker to unlock": lambda client, text: client.workers.unlock([text]),
    "the name to pause": lambda client, text: client.pauses.pause(f"task:{text}"),
    "the reason of a pause": lambda client, text: client.pauses.pause("task:work", reason=text),
    "the task of a limit": lambda client, text: client.limits.set(text, running=1),
    "who set a limit": lambda client, text: client.limits.set("work", running=1, by=text),
}


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"], ids=["NUL", "a lone surrogate"])
@pytest.mark.parametrize("call", TEXTS.values(), ids=TEXTS)
def test_a_text_that_cannot_be_stored_is_rejected_as_wrong_input(
    site: QueueFixture, call: Callable[[Client, str], object], text: str
) -> None:
    with pytest.raises(InvalidInputError) as rejected:
        call(site.client, text)

    assert "\n" not in str(rejected.value)
