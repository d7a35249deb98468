"""The log of a whole `gw run`: records of gw, of tasks and of the application."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.shell import Shell

pytestmark = pytest.mark.acceptance

TASKS = """
import json
import logging
import warnings

from gw_core import task

log = logging.getLogger("shop.orders")


@task
def receipt(payload, context):
    context.logger.info("receipt for order %s", 12, extra={"order": 12})
    log.info("from %s", "the shop")
    log.debug("not asked for")


@task
def broken(payload):
    warnings.warn("the format is old")
    try:
        json.loads("{")
    except ValueError as error:
        raise RuntimeError("cannot import invoice") from error


@task
def chatty():
    print("printed by a task")


@task(isolation="process")
def chatty_apart():
    print("printed by a task")


@task(isolation="process")
def apart(payload, context):
    context.logger.info("receipt for order %s", 12)
    log.warning("from %s", "a process")
"""
NATIVE = """

@task
def native(payload):
    structlog.contextvars.bind_contextvars(tenant="acme")
    structlog.get_logger("shop").info("charged")
"""
CONFIGURED = """
import logging.config

logging.config.dictConfig({
    "version": 1,
    "formatters": {"own": {"format": "OWN %(name)s %(message)s"}},
    "handlers": {"own": {"class": "logging.StreamHandler", "formatter": "own"}},
    "root": {"handlers": ["own"], "level": "INFO"},
})
"""


@pytest.fixture
def shell(tmp_path: Path, database_url: str) -> Shell:
    shell = Shell(tmp_path, database=database_url)
    shell.write("tasks/shop.py", TASKS)
    return shell


def entries(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def run_json(shell: Shell, task: str, *arguments: str) -> list[dict[str, Any]]:
    shell.gw("add", f"{task}", "--max-attempts", "1", "--queue", "till")
    ran = shell.gw("run", "--once", "--log-format", "json", *arguments)
    assert ran.code == 0, ran.err
    return entries(ran.err)


def test_a_job_its_task_and_the_application_log_in_json_with_fields(shell: Shell) -> None:
    lines = {entry["message"]: entry for entry in run_json(shell, "receipt")}

    assert (lines["receipt for order 12"]["order"], lines["receipt for order 12"]["job_id"]) == (12, 1)
    assert (lines["from the shop"]["logger"], lines["from the shop"]["level"]) == ("shop.orders", "info")
    assert (lines["from the shop"]["job_id"], lines["from the shop"]["task"]) == (1, "receipt")
    assert "not asked for" not in lines
    (done,) = (entry for message, entry in lines.items() if message.startswith("Completed task 1"))
    known = ("job_id", "task", "queue_name", "attempt", "max_attempts")
    assert [done[key] for key in known] == [1, "receipt", "till", 1, 1]
    assert done["duration_ms"] >= 0
    assert done["worker_id"].startswith("gw-")


def test_a_failure_keeps_its_cause(shell: Shell) -> None:
    (failed,) = (entry for entry in run_json(shell, "broken") if entry["message"].startswith("Failed task"))

    assert failed["error"]["type"] == "RuntimeError"
    assert failed["error"]["cause"]["type"] == "JSONDecodeError"
    assert any("tasks/shop.py" in frame for frame in failed["error"]["frames"])


def test_a_warning_of_python_is_a_record_like_any_other(shell: Shell) -> None:
    (warning,) = (entry for entry in run_json(shell, "broken") if entry["logger"] == "py.warnings")

    assert (warning["level"], warning["job_id"]) == ("warning", 1)
    assert "UserWarning: the format is old" in warning["message"]


def test_an_isolated_task_logs_through_its_worker(shell: Shell) -> None:
    lines = {entry["message"]: entry for entry in run_json(shell, "apart")}

    for message, logger in (("receipt for order 12", "graphile_worker.job"), ("from a process", "shop.orders")):
        assert (lines[message]["logger"], lines[message]["job_id"]) == (logger, 1)


@pytest.mark.parametrize("task", ["chatty", "chatty_apart"])
@pytest.mark.parametrize("options", [(), ("--processes", "1")])
def test_what_a_task_prints_appears_while_the_worker_goes_on(shell: Shell, task: str, options: tuple[str, ...]) -> None:
    shell.gw("add", task)

    with shell.started("run", *options) as running:
        running.prints("printed by a task")

        assert running.is_running


def test_the_start_names_database_schema_and_tasks(shell: Shell) -> None:
    ran = shell.gw("run", "--once", "--log-time", "never")

    first, *others = ran.err.splitlines()
    assert first.startswith("[core] INFO: Connected to ")
    assert first.endswith(", schema graphile_worker")
    assert any("tasks: 'apart'" in line for line in others), others


def test_the_start_names_ten_tasks(shell: Shell) -> None:
    for number in range(14):
        shell.write(
            f"tasks/task_{number:02}.py", f"from gw_core import task\n\n@task\ndef task_{number:02}(payload): pass\n"
        )
    ran = shell.gw("run", "--once", "--log-time", "never")

    [line] = [line for line in ran.err.splitlines() if "tasks: " in line]
    assert len(re.findall(r"'\w+'", line)) == 10
    assert re.search(r" and \d+ more$", line)


def test_an_application_that_configures_logging_gets_all_records(shell: Shell) -> None:
    shell.write("tasks/shop.py", CONFIGURED + TASKS)
    shell.gw("add", "receipt")

    ran = shell.gw("run", "--once")

    assert "OWN shop.orders from the shop" in ran.err
    assert "OWN graphile_worker.job receipt for order 12" in ran.err
    assert "OWN graphile_worker.worker Completed task 1" in ran.err


def test_the_structlog_recipe_of_the_guide_writes_every_record(shell: Shell) -> None:
    pytest.importorskip("structlog")
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "running-workers.md").read_text()
    recipe = guide.partition("### structlog")[2].partition("```python\n")[2].partition("```")[0]
    shell.write("tasks/shop.py", recipe + TASKS + NATIVE)
    shell.gw("add", "receipt")
    shell.gw("add", "broken", "--max-attempts", "1", "--payload", '{"card": "4111-1111"}')
    shell.gw("add", "native")

    written = shell.gw("run", "--once", "--concurrency", "1").err
    lines = {re.sub(r"\(.*", "", entry["event"]): entry for entry in entries(written)}

    assert lines["receipt for order 12"]["order"] == 12
    assert (lines["from the shop"]["logger"], lines["from the shop"]["job_id"]) == ("shop.orders", 1)
    assert lines["Completed task 1 "]["task"] == "receipt"
    assert lines["Failed task 2 "]["exception"][0]["exc_type"] == "RuntimeError"
    native = lines["charged"]
    assert (native["tenant"], native["task"], native["level"], native["logger"]) == ("acme", "native", "info", "shop")
    assert [entry["event"] for entry in entries(written) if "timestamp" not in entry] == []
    assert "tenant" not in lines["Completed task 3 "]
    assert "4111" not in written


def test_the_crontab_beside_the_tasks_is_used_and_its_unknown_tasks_are_reported(shell: Shell) -> None:
    shell.write("project/tasks/hello.py", "def hello(payload): ...\n")
    shell.write("project/crontab", "* * * * * hello\n0 4 29 2 * nobody\n")

    run = ("run", "--once", "--cron", "--tasks", "project/tasks", "--log-time", "never")
    alone, together = shell.gw(*run).err, shell.gw(*run, "--processes", "2").err

    assert "[core] INFO: 2 cron items from project/crontab\n" in alone
    assert "[cron] WARNING: This worker has no task for these cron items" in alone
    assert [alone.count("'nobody'"), together.count("'nobody'")] == [1, 1]


@pytest.mark.parametrize(("value", "is_debug"), [("1", True), ("0", False)])
def test_the_variable_of_graphile_worker_logs_details(shell: Shell, value: str, is_debug: bool) -> None:
    shell.gw("add", "receipt")

    ended = shell.gw("run", "--once", GRAPHILE_LOGGER_DEBUG=value)

    assert (" DEBUG: " in ended.out + ended.err) == is_debug
