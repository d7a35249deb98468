"""Add jobs, run them, and end: no framework, no second program."""

import os

from gw_core import Client, TaskRegistry, run_once

tasks = TaskRegistry()


@tasks.task
def greet(payload: dict) -> None:
    print(f"Hello, {payload['name']}!")


url = os.environ["DATABASE_URL"]
with Client(url) as queue:
    queue.migrate()
    queue.add("greet", {"name": "World"})
print(run_once(url, tasks=tasks).completed, "job completed")
