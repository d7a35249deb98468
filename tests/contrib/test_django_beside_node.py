"""A Node.js worker and Django's tasks on one schema."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.node_worker import NEWEST, node_worker
from support.shell import rows
from support.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.acceptance]
pytest.importorskip("django")
if sys.version_info < (3, 12):
    pytest.importorskip("django_tasks")

PROJECT = Path(__file__).with_name("django_project")
NODE_TASKS = {"node_task": ""}
# A file of Node's tasks cannot have dots in its name; a list of tasks can.
RUN_FOR_DJANGO = """
    const task = async (payload) => { if (payload.args[0] !== 7) throw new Error(JSON.stringify(payload)); };
    await lib.runOnce({ connectionString: url, schema, taskList: { "shop.tasks.for_node": task } });
"""


def test_each_worker_runs_its_own_tasks_of_one_queue(empty_database_url: str) -> None:
    node = node_worker(NEWEST)
    environment = {**os.environ, "DATABASE_URL": empty_database_url, "PYTHONPATH": str(PROJECT)}

    def manage(*arguments: str) -> None:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(command, cwd=PROJECT, env=environment, text=True, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr

    manage("migrate", "--verbosity", "0")
    with node.running(empty_database_url, NODE_TASKS):
        manage("shell", "--verbosity", "0", "-c", ENQUEUE)
        manage("gw", "add", "shop.tasks.for_node", "--payload", '{"args": [7], "kwargs": {}}')
        manage("gw", "add", "node_task")
        manage("gw", "run", "--once")
        node.script(empty_database_url, RUN_FOR_DJANGO)
        wait_until(lambda: rows(empty_database_url, JOBS) == [], what="every job to be completed")

    assert rows(empty_database_url, "select count(*) from shop_order") == [(200,)]


JOBS = "select id, last_error from graphile_worker._private_jobs"
ENQUEUE = """
from shop import tasks
for number in range(200):
    tasks.create_order.enqueue(str(number))
"""
