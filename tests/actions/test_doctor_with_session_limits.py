"""The doctor of a console that may only read: its own bounds are no illness of the server."""

from __future__ import annotations

from support.jobs_in_states import Queue

from gw_core import Client, SessionLimits
from gw_core.front_ends import CheckStatus


def test_a_session_opened_to_read_alone_does_not_make_the_server_read_only(queue: Queue) -> None:
    with Client(queue.url, max_pool_size=1, session_limits=SessionLimits(read_only=True)) as client:
        (server,) = (each for each in client.doctor.findings() if each.check == "server")

    assert server.status is CheckStatus.OK


def test_a_server_that_was_set_to_read_only_is_found_all_the_same(queue: Queue) -> None:
    name = queue.rows("select current_database()")[0][0]
    queue.rows(f'alter database "{name}" set default_transaction_read_only = on')

    with Client(queue.url, max_pool_size=1) as client:
        (server,) = (each for each in client.doctor.findings() if each.check == "server")

    assert server.status is CheckStatus.ERROR
