"""The client: every entry point of the queue, and what it rejects."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import product
from typing import Any

import msgspec
import psycopg
import pydantic
import pytest
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


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"task": ""}, "the task identifier is empty"),
    ({"task": "x" * 129}, "129 characters long; at most 128"),
    ({"task": "a\0b"}, "cannot store"),
    ({"task": "a\ud800"}, "cannot store"),
    ({"task": None}, "must be a text, not NoneType"),
    ({"queue_name": ""}, "the queue name is empty"),
    ({"queue_name": "q" * 129}, "at most 128"),
    ({"job_key": ""}, "the job key is empty"),
    ({"job_key": "k" * 513}, "at most 512"),
    ({"max_attempts": 0}, "must lie between 1 and 32767"),
    ({"max_attempts": 32_768}, "must lie between 1 and 32767"),
    ({"max_attempts": True}, "must be a whole number"),
    ({"max_attempts": "3"}, "must be a whole number"),
    ({"priority": 32_768}, "must lie between -32768 and 32767"),
    ({"priority": -32_769}, "must lie between -32768 and 32767"),
    ({"priority": 1.5}, "must be a whole number"),
    ({"job_key_mode": "preserve_run_at"}, "without a job key"),
    (
        {"job_key_mode": "nonsense", "job_key": "k"},
        "'nonsense' is not a job key mode; give one of replace",
    ),
    ({"flags": "slow"}, "must be a list of names"),
    ({"flags": None}, "must be a list of names"),
    ({"flags": 5}, "must be a list of names"),
    ({"flags": ["ok", ""]}, "the flag is empty"),
    ({"flags": [1]}, "must be a text"),
    ({"run_at": NAIVE}, "has no time zone"),
    ({"run_at": datetime(2030, 1, 1, tzinfo=Zoneless())}, "has no time zone"),
    ({"run_at": date(2030, 1, 1)}, "run_at must be an aware datetime"),
    ({"run_at": "tomorrow"}, "run_at must be an aware datetime"),
    ({"run_at": 5}, "run_at must be an aware datetime"),
    ({"run_at": timedelta(days=2_000_000)}, "2,000,000 days from now; at most 1,000,000"),
    ({"run_at": timedelta.min}, "999,999,999 days from now; at most"),
    ({"payload": float("nan")}, "contains nan, which JSON cannot hold"),
    ({"payload": {"a": [1, None, {"b": float("inf")}]}}, "contains inf"),
    ({"payload": (1.0, -float("inf"))}, "contains -inf"),
    ({"payload": {float("inf")}}, "contains inf"),
    ({"payload": Measured("x", float("nan"))}, "contains nan"),
    ({"payload": [MeasuredStruct(float("nan"))]}, "contains nan"),
    ({"payload": MeasuredModel(value=float("nan"))}, "contains nan"),
    ({"payload": {1, 2}} | {"payload": object()}, "cannot be written as JSON"),
    ({"payload": {"a": "\0"}}, "\\u0000"),
    ({"payload": {"\0": 1}}, "\\u0000"),
]


def test_a_wrong_job_is_rejected_with_its_reason_and_nothing_is_added(site: QueueFixture) -> None:
    for fields, reason in WRONG:

        def wrong(fields: dict[str, Any] = fields) -> JobSpec:
            return JobSpec(**{"task": "work", **fields})

        ways: list[Callable[[], object]] = [
            lambda wrong=wrong: site.client.add_many([JobSpec(task="fine"), wrong()]),
            lambda wrong=wrong: site.client.groups.add([JobSpec(task="fine")], then=wrong()),
        ]
        if isinstance(fields.get("payload"), list | tuple):
            ways.append(lambda fields=fields: site.client.add_batch("work", fields["payload"]))
        with pytest.raises(InvalidJobError) as rejected:
            site.client.add(**{"task": "work", **fields})
        for way in ways:
            with pytest.raises(InvalidJobError):
                way()

        assert reason in str(rejected.value)
        assert "\n" not in str(rejected.value)
    assert site.jobs() == []


FITTING: list[dict[str, Any]] = [
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
]


def test_what_lies_just_within_the_bounds_is_added(site: QueueFixture) -> None:
    for fields in FITTING:
        job = site.client.add(**{"task": "work", **fields})

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


def test_a_batch_needs_items(site: QueueFixture) -> None:
    none: list[Any] = [[], "text", b"bytes", {"a": 1, "b": 2}, {1, 2}, 5, None]
    for items in none:
        with pytest.raises(InvalidJobError, match="at least one item"):
            site.client.add_batch("work", items)


def test_several_jobs_are_given_as_specs(site: QueueFixture) -> None:
    last = JobSpec(task="last")
    sharded = ShardedClient({"one": site.client}, by=lambda spec: 1)
    wrong: list[Any] = ["abc", 5, None, [{"task": "work"}], last, [last, "b"], [None]]

    for add in (site.client.add_many, lambda given: site.client.groups.add(given, then=last), sharded.add_many):
        for specs in wrong:
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
def test_many_jobs_are_added_all_or_none(
    site: QueueFixture, count: int, options: dict[str, Callable[[int], Any]]
) -> None:
    with pytest.raises(Exception, match="type json"):
        site.client.add_many(a_bulk_that_breaks_after(count, **options))

    assert site.jobs() == []


# -- queries and actions ----------------------------------------------------------------------------------------------


def test_what_is_no_id_is_rejected(site: QueueFixture) -> None:
    jobs, wrong = site.client.jobs, [0, -1, "1", True, 2**63, None]
    for act, job_id in product((jobs.complete, jobs.fail, jobs.reschedule, jobs.retry), wrong):
        with pytest.raises(InvalidJobError, match="not the id of a job"):
            act([job_id])


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


def test_a_text_that_cannot_be_stored_is_rejected_as_wrong_input(site: QueueFixture) -> None:
    for call, text in product(TEXTS.values(), ("a\0b", "a\ud800b")):
        with pytest.raises(InvalidInputError) as rejected:
            call(site.client, text)

        assert "\n" not in str(rejected.value)
