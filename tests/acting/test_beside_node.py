"""Acting on a queue that the Node.js worker installed, filled and works on; its effects are the ancestor's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from acting_support import Program, Queue

sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))

from node_worker import NEWEST, NodeWorker, node_worker

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

FAIL = {"mail": "throw new Error('Boom');"}
ADD = """
    const utils = await lib.makeWorkerUtils({ connectionString: url, schema });
    const ids = [];
    for (let i = 0; i < 6; i++) {
        const options = { queueName: i % 2 ? "q" : undefined, maxAttempts: i < 4 ? 1 : 5 };
        const job = await utils.addJob("mail", { i }, options);
        ids.push(Number(job.id));
    }
    await utils.release();
    return ids;
"""


@pytest.fixture(scope="module")
def node() -> NodeWorker:
    return node_worker(NEWEST)


def test_every_command_works_on_a_queue_of_node(
    gw: Program, node: NodeWorker, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", empty_database_url)
    node.install_schema(empty_database_url)
    queue = Queue(empty_database_url)
    jobs = node.script(empty_database_url, ADD)
    node.run_once(empty_database_url, FAIL)

    assert gw("doctor").code == 0
    assert gw("health").code == 0
    assert gw("retry", jobs[0], jobs[4]).code == 0
    assert gw("reschedule", jobs[1], "--attempts", "0", "--priority", "3", "--run-at", "now").code == 0
    assert gw("fail", jobs[5], "--reason", "Enough").code == 0
    assert gw("complete", jobs[2]).code == 0
    assert queue.rows("select id, attempts, last_error from graphile_worker._private_jobs order by id") == [
        (jobs[0], 0, "Boom"),
        (jobs[1], 0, "Boom"),
        (jobs[3], 1, "Boom"),
        (jobs[4], 1, "Boom"),
        (jobs[5], 5, "Enough"),
    ]
    said = node.run_once(empty_database_url, {"mail": "helpers.logger.info(`Ran ${helpers.job.id}`);"})
    assert all(f"Ran {job}" in said for job in (jobs[0], jobs[1], jobs[4]))
    assert gw("cleanup", "failed-jobs", "unused-queues", "unused-tasks", "--yes").code == 0
    assert (queue.ids(), queue.value("select count(*) from graphile_worker._private_tasks")) == ([], 0)
