"""A bulk is encoded part by part while the server works on the part before, and stays all or none."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from gw_core import Client, JobSpec
from gw_core.postgres.enqueue import BULK
from gw_core.postgres.pipelining import overlapped

TIMEOUT = 60.0


def not_cancelled() -> None:
    raise AssertionError("nothing was to be cancelled")


# -- one after the other, beside the making of the next ------------------------------------------------------------


def test_results_come_in_the_order_of_the_items() -> None:
    assert list(overlapped(range(20), lambda item: item * 2, cancel=not_cancelled)) == list(range(0, 40, 2))


def test_the_next_item_is_made_while_the_one_before_is_acted_on() -> None:
    made_next = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        made_next.set()
        yield 2

    assert list(overlapped(items(), lambda _: made_next.wait(TIMEOUT), cancel=not_cancelled)) == [True, True]


def test_two_items_are_never_acted_on_at_once() -> None:
    busy = threading.Lock()

    def alone(_: int) -> bool:
        free = busy.acquire(blocking=False)
        busy.release()
        return free

    assert all(overlapped(range(200), alone, cancel=not_cancelled))


def test_an_item_that_cannot_be_made_cancels_what_is_underway_and_waits_for_its_end() -> None:
    cancelled, ended = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        yield 1
        raise ValueError("the second cannot be made")

    def act(_: int) -> None:
        cancelled.wait(TIMEOUT)
        ended.set()

    with pytest.raises(ValueError, match="the second"):
        list(overlapped(items(), act, cancel=cancelled.set))

    assert ended.is_set()


def test_an_act_that_fails_ends_it_all() -> None:
    acted: list[int] = []

    def act(item: int) -> None:
        acted.append(item)
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item 0"):
        list(overlapped(range(5), act, cancel=not_cancelled))

    assert acted == [0]


# -- whole bulks ---------------------------------------------------------------------------------------------------


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
