"""A bulk is encoded statement by statement while the server works, and stays all or none."""

from __future__ import annotations

import psycopg
import pytest
from support.waiting import wait_until

from gw_core import Client, JobSpec
from gw_core.errors import DatabaseError, InvalidJobError
from gw_core.postgres.road.add_calls import BULK


def test_a_payload_that_cannot_be_written_takes_back_the_parts_before(database_url: str) -> None:
    with Client(database_url) as client:
        jobs = [*(JobSpec(task="work") for _ in range(2 * BULK)), JobSpec(task="mail", payload=object(), job_key="k")]
        with pytest.raises(InvalidJobError, match=r"JSON: .* \(job 10001 of 10001, .* 'mail' and the key 'k'\)"):
            client.add_many(jobs)

        assert client.add_many([JobSpec(task="work")])
        assert len(client.jobs.list().jobs) == 1


def test_texts_arrive_in_the_order_and_the_words_they_were_given(database_url: str) -> None:
    words = ["plain", "späť", "日本", "🙂", 'quoted "\\"', "", "null", "a,b{c}"]
    with Client(database_url) as client:
        ids = client.add_many([JobSpec(task=f"tásk-{place}", payload=word) for place, word in enumerate(words)])
        jobs = [client.jobs.get(job_id) for job_id in sorted(ids)]

    assert [job and (job.task, job.payload) for job in jobs] == [
        (f"tásk-{place}", word) for place, word in enumerate(words)
    ]


@pytest.mark.parametrize("encoding", ["latin1", "sql_ascii"])
def test_texts_arrive_whatever_the_connection_encodes_them_in(database_url: str, encoding: str) -> None:
    with Client(database_url) as client, psycopg.connect(database_url, client_encoding=encoding) as conn:
        (job_id,) = client.add_many([JobSpec(task="café", payload="naïve")], conn=conn)
        conn.commit()
        job = client.jobs.get(job_id)

    assert job is not None
    assert (job.task, job.payload) == ("café", "naïve")


class EncodedWhile:
    """A payload that waits, when it is encoded, until another session waits for the test's lock; then unlocks."""

    def __init__(self, conn: psycopg.Connection) -> None:
        self.conn = conn

    def model_dump_json(self, **options: bool) -> str:
        wait_until(self._is_waited_for, what="the server to work on the statement before")
        self.conn.execute("select pg_advisory_unlock(1)")
        return "{}"

    def _is_waited_for(self) -> bool:
        return bool(self.conn.execute("select 1 from pg_locks where locktype = 'advisory' and not granted").fetchall())


@pytest.mark.direct("the test holds a lock of its session")
def test_the_server_works_on_a_statement_while_the_client_encodes_the_next(database_url: str) -> None:
    with Client(database_url) as client, psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("select pg_advisory_lock(1)")
        on_insert(conn, "perform pg_advisory_xact_lock_shared(1)")
        first = [JobSpec(task="work") for _ in range(BULK)]

        assert len(client.add_many([*first, JobSpec(task="work", payload=EncodedWhile(conn))])) == BULK + 1


def test_a_rejected_statement_raises_its_own_error_and_takes_back_all_statements(database_url: str) -> None:
    with Client(database_url) as client, psycopg.connect(database_url, autocommit=True) as conn:
        on_insert(conn, "if new.priority = 7 then raise 'no sevens'; end if")
        specs = [JobSpec(task="work", priority=7 if n == BULK else 0) for n in range(4 * BULK)]

        with pytest.raises(DatabaseError, match="no sevens"):
            client.add_many(specs)

        assert client.add_many([JobSpec(task="work")] * (2 * BULK))
        assert conn.execute("select count(*) from graphile_worker._private_jobs").fetchone() == (2 * BULK,)


def on_insert(conn: psycopg.Connection, statement: str) -> None:
    """Run a statement of PL/pgSQL before each insert of a job, waiting 20 s for locks."""
    conn.execute(
        "create function public.on_insert() returns trigger language plpgsql set lock_timeout = '20s' "
        f"as $$ begin {statement}; return new; end $$"
    )
    conn.execute(
        "create trigger on_insert before insert on graphile_worker._private_jobs "
        "for each row execute function public.on_insert()"
    )
