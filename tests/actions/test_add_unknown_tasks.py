"""`gw add` warns about a task identifier that was never used: it is probably misspelled."""

from __future__ import annotations

from support.cli_program import CliProgram
from support.jobs_in_states import Queue

from gw_core import Client


def test_a_misspelled_task_is_reported_and_added(gw: CliProgram, queue: Queue, database_url: str) -> None:
    with Client(database_url) as client:
        client.add("send_email")

    ended = gw("add", "send_emial")

    assert ended.code == 0
    assert "no worker has registered a task 'send_emial'; did you mean 'send_email'?" in ended.err
    assert queue.value("select count(*) from graphile_worker._private_jobs") == 2


def test_strict_rejects_it(gw: CliProgram, queue: Queue, database_url: str) -> None:
    with Client(database_url) as client:
        client.add("send_email")

    ended = gw("add", "send_emial", "--strict")

    assert ended.code == 2
    assert "did you mean 'send_email'?" in ended.err
    assert queue.value("select count(*) from graphile_worker._private_jobs") == 1


def test_a_known_task_and_a_new_queue_pass_silently(gw: CliProgram) -> None:
    assert gw("add", "send_email", "--strict").err == ""
    assert gw("add", "send_email", "--strict").err == ""
