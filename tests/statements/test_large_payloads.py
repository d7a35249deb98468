"""A claim keeps no large payload in the server: it is unpacked on its way to the worker."""

from __future__ import annotations

import pytest

from statements.statement_fixture import Queue

LARGE = "gw " * 200_000
"""Twenty of them are more than what a statement may keep in memory (`work_mem`)."""


@pytest.mark.parametrize("queue_name", [None, "q"])
def test_a_claim_writes_no_payload_to_a_file(queue: Queue, queue_name: str | None) -> None:
    for _ in range(20):
        queue.add(payload={"text": LARGE}, queue_name=queue_name)
    connection = queue.store.connection
    said: list[str | None] = []
    connection.execute("set log_temp_files = 0")
    connection.execute("set client_min_messages = log")
    connection.add_notice_handler(lambda notice: said.append(notice.message_primary))

    jobs = queue.claim(limit=20, per_queue=20)

    assert len(jobs) == 20
    assert [job.payload for job in jobs] == [{"text": LARGE}] * 20
    assert [each for each in said if each and "temporary file" in each] == []
