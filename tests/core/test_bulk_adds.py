"""A bulk is sent in several statements, and stays all or none."""

from __future__ import annotations

import psycopg
import pytest

from gw_core import Client, JobSpec
from gw_core.postgres.add_calls import BULK


def test_a_payload_that_cannot_be_written_takes_back_the_parts_before(database_url: str) -> None:
    with Client(database_url) as client:
        with pytest.raises(Exception, match="cannot be written as JSON"):
            client.add_many([*(JobSpec(task="work") for _ in range(2 * BULK)), JobSpec(task="work", payload=object())])

        assert client.add_many([JobSpec(task="work")])
        assert len(client.jobs.list().jobs) == 1


def test_texts_arrive_in_the_order_and_the_words_they_were_given(database_url: str) -> None:
    words = ["plain", "späť", "日本", "🙂", 'quoted "\\"', "", "null", "a,b{c}"]
    with Client(database_url) as client:
        ids = client.add_many([JobSpec(task=f"tásk-{place}", payload=word) for place, word in enumerate(words)])
        jobs = [client.jobs.get(job_id) for job_id in sorted(ids)]

    assert [job and (job.task_identifier, job.decoded_payload()) for job in jobs] == [
        (f"tásk-{place}", word) for place, word in enumerate(words)
    ]


@pytest.mark.parametrize("encoding", ["latin1", "sql_ascii"])
def test_texts_arrive_whatever_the_connection_encodes_them_in(database_url: str, encoding: str) -> None:
    with Client(database_url) as client, psycopg.connect(database_url, client_encoding=encoding) as conn:
        (job_id,) = client.add_many([JobSpec(task="café", payload="naïve")], conn=conn)
        conn.commit()
        job = client.jobs.get(job_id)

    assert job is not None
    assert (job.task_identifier, job.decoded_payload()) == ("café", "naïve")
