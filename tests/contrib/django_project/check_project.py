"""The command, the migration and the checks of the app."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
from api import task
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder
from django.test import override_settings
from settings import GRAPHILE
from shop import tasks
from shop.models import Order
from worker import run_jobs

from gw_core.contrib.django import client, options
from gw_core.contrib.django.worker import registry

URL = os.environ["DATABASE_URL"]


def gw(*arguments: str) -> str:
    """Run a command of gw on the project's queue; `manage.py` would set Django up again."""
    output = io.StringIO()
    call_command("gw", *arguments, stdout=output, stderr=io.StringIO())
    return output.getvalue()


def manage(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments], text=True, capture_output=True, timeout=100, check=False
    )


def tasks_setting(**changes: Any) -> dict[str, Any]:
    return {"default": {"BACKEND": GRAPHILE, **changes}}


def problems(**changes: Any) -> list[str]:
    with override_settings(TASKS=tasks_setting(**changes)), pytest.raises(SystemCheckError) as caught:
        call_command("check", databases=["default"], fail_level="WARNING")
    return [line.split(":")[1] for line in str(caught.value).splitlines() if line.startswith("?: (graphile_worker")]


# -- the command -----------------------------------------------------------------------------------------------------


def test_the_command_runs_any_command_of_gw_on_the_projects_queue() -> None:
    result = tasks.noop.enqueue(1)

    assert [str(job["id"]) for job in json.loads(gw("list", "--json"))] == [result.id]


def test_a_failure_of_the_command_is_a_command_error() -> None:
    with pytest.raises(CommandError, match="unknown command") as caught:
        call_command("gw", "lits", stderr=io.StringIO())
    assert caught.value.returncode == 2


def test_workers_run_the_projects_tasks_of_the_lanes_they_are_given() -> None:
    tasks.create_order.enqueue("book")
    tasks.create_order_async.using(queue_name="slow").enqueue("pen")
    done = manage("gw", "--lane", "slow", "run", "--once")
    assert done.returncode == 0, done.stderr
    assert list(Order.objects.values_list("item", flat=True)) == ["pen"]

    for _ in range(20):
        tasks.which_process.enqueue()
    gw("run", "--once", "--processes", "2")
    assert Order.objects.count() == 22


def test_an_unknown_backend_makes_no_traceback_on_the_command_line() -> None:
    done = manage("gw", "--backend", "unknown", "list")

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "CommandError: TASKS has no backend of gw named 'unknown'; name one with --backend"
    ]


def test_the_options_of_every_command_of_django_may_stand_behind_gws_whose_exit_code_it_is() -> None:
    done = manage("gw", "lits", "--json", "--settings", "settings", "--pythonpath=.")

    assert (done.returncode, done.stderr.count("\n"), "lits" in done.stderr) == (2, 1, True)


def test_an_unknown_backend_is_an_error() -> None:
    with pytest.raises(CommandError, match="no backend of gw named 'unknown'") as caught:
        call_command("gw", "list", backend="unknown")
    assert caught.value.returncode == 1


def test_schedules_of_tasks_are_items_of_the_crontab_once() -> None:
    assert sorted((item["id"], item["task"]) for item in json.loads(gw("cron", "parse", "--json"))) == [
        ("leap-lane", "slow/shop.tasks.leap_lane"),
        ("shop.tasks.leap_day", "shop.tasks.leap_day"),
    ]


def in_queues(**schemas: str) -> dict[str, Any]:
    """Return the setting TASKS with a backend for each alias, whose queue is in this schema."""
    return {
        alias: {"BACKEND": GRAPHILE, "QUEUES": ["default", "slow"], "OPTIONS": {"SCHEMA": schema}}
        for alias, schema in schemas.items()
    }


@pytest.mark.parametrize(
    ("schemas", "scheduling"),
    [
        ({"default": "one", "other": "two"}, {"default"}),
        ({"default": "one", "other": "one"}, {"default", "other"}),
        ({"first": "one", "other": "two"}, {"first"}),
    ],
    ids=["two queues", "one queue", "no default"],
)
def test_the_schedule_of_a_task_adds_jobs_to_one_queue(schemas: dict[str, str], scheduling: set[str]) -> None:
    with override_settings(TASKS=in_queues(**schemas)):
        found = {alias: [each.task for each in registry(alias).cron_items] for alias in schemas}

    assert {alias for alias, items in found.items() if "shop.tasks.leap_day" in items} == scheduling
    assert {alias for alias, items in found.items() if "slow/shop.tasks.leap_lane" in items} == scheduling


def test_a_crontab_names_tasks_by_their_paths(tmp_path: Path) -> None:
    crontab = tmp_path / "crontab"
    crontab.write_text("0 4 * * * shop.tasks.create_order {args: ['book']}\n* * * * * slow/extra_tasks.extra\n")

    gw("cron", "validate", str(crontab))


def test_a_worker_runs_a_scheduled_task_with_the_arguments_of_its_schedule() -> None:
    for identifier in ("shop.tasks.leap_day", "leap-lane"):
        gw("cron", "run", identifier)
    run_jobs(["default", "slow"])

    assert {"leap day", "leap lane"} == set(Order.objects.values_list("item", flat=True))


# -- the migration ---------------------------------------------------------------------------------------------------


def test_the_migration_installs_the_schema_and_the_models_need_no_other() -> None:
    with psycopg.connect(URL) as connection:
        [found] = connection.execute("select to_regclass('graphile_worker._private_jobs') is not null").fetchone() or []
    assert found
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


COMMANDS = """
from django.core.management import call_command
call_command("migrate", verbosity=0)
call_command("flush", interactive=False, verbosity=0)
call_command("check", databases=["default"], fail_level="WARNING")
"""
OF_TESTS = """
from settings import *
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "tests.sqlite3"}}
TASKS = {"default": {"BACKEND": "django%stasks.backends.dummy.DummyBackend", "QUEUES": ["default", "slow"]}}
"""


def test_a_project_may_test_with_another_backend_and_another_database(tmp_path: Path) -> None:
    (tmp_path / "settings_of_tests.py").write_text(OF_TESTS % ("." if find_spec("django.tasks") else "_"))
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parent), os.environ["PYTHONPATH"]])
    program = [sys.executable, str(Path(__file__).with_name("manage.py"))]
    done = subprocess.run(
        [*program, "shell", "--verbosity", "0", "--settings", "settings_of_tests", "-c", COMMANDS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        text=True,
        capture_output=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# -- the checks ------------------------------------------------------------------------------------------------------


def test_a_project_that_is_set_up_has_no_problem() -> None:
    call_command("check", databases=["default"], fail_level="WARNING")


def test_a_missing_schema_is_reported_for_its_database() -> None:
    with override_settings(TASKS=tasks_setting(OPTIONS={"SCHEMA": "elsewhere"})):
        call_command("check")
    assert problems(OPTIONS={"SCHEMA": "elsewhere"}) == [" (graphile_worker.W011) TASKS['default']"]


def test_migrate_installs_the_schema_of_another_backend_as_the_hint_says() -> None:
    with override_settings(TASKS=tasks_setting(OPTIONS={"SCHEMA": "elsewhere"})):
        with pytest.raises(SystemCheckError, match=r"HINT: run: manage\.py migrate\n"):
            call_command("check", databases=["default"], fail_level="WARNING")
        try:
            call_command("migrate", verbosity=0)
            call_command("check", databases=["default"], fail_level="WARNING")
        finally:
            with psycopg.connect(URL) as connection:
                connection.execute("drop schema elsewhere cascade")


def test_migrate_upgrades_the_schema() -> None:
    with psycopg.connect(URL) as connection:
        connection.execute(
            "delete from graphile_worker._private_gw_migrations where id = (select max(id) from"
            " graphile_worker._private_gw_migrations)"
        )
    with pytest.raises(SystemCheckError, match=r"older than this version of gw(.|\n)*manage\.py migrate"):
        call_command("check", databases=["default"], fail_level="WARNING")
    call_command("migrate", verbosity=0)

    call_command("check", databases=["default"], fail_level="WARNING")


def test_migrate_sets_the_limits_that_tasks_declare_and_leaves_those_of_operators() -> None:
    limited = "shop.tasks.limited"
    call_command("migrate", verbosity=0)
    limits = {each.task: each for each in client().limits.list()}
    assert set(limits) == {limited, f"slow/{limited}"}
    assert limits[limited].running == 2

    options(limit={"per_period": 10, "period": 60})(tasks.limited)
    client().limits.set(f"slow/{limited}", running=7, by="an operator")
    try:
        call_command("migrate", verbosity=0)
        limits = {each.task: each for each in client().limits.list()}
        assert (limits[limited].running, limits[limited].per_period) == (None, 10)
        assert limits[f"slow/{limited}"].running == 7
        client().limits.set("shop.tasks.gone", running=1, by="manage.py migrate")
    finally:
        options(limit=2)(tasks.limited)
        client().limits.remove(f"slow/{limited}")
        call_command("migrate", verbosity=0)
    assert {each.task: each.running for each in client().limits.list()} == {limited: 2, f"slow/{limited}": 2}


class AllTablesElsewhere:
    """A router of a database that has only the queue."""

    def allow_migrate(self, *_: Any, **__: Any) -> bool:
        return False


@pytest.mark.parametrize("routers", [[], [AllTablesElsewhere()]], ids=["with tables", "without tables"])
def test_flush_empties_the_queue(routers: list[Any]) -> None:
    tasks.noop.enqueue(1)
    with override_settings(DATABASE_ROUTERS=routers):
        call_command("flush", interactive=False, verbosity=0)

    assert client().jobs.count().jobs == 0


def test_a_test_case_with_serialized_rollback_empties_the_queue() -> None:
    tasks.noop.enqueue(1)
    call_command("flush", interactive=False, verbosity=0, inhibit_post_migrate=True)

    assert client().jobs.count().jobs == 0


@pytest.mark.parametrize(("answer", "left"), [("yes", 0), ("no", 1)])
def test_a_flush_asks_before_it_empties_the_queue(monkeypatch: pytest.MonkeyPatch, answer: str, left: int) -> None:
    monkeypatch.setattr("builtins.input", lambda _: answer)
    tasks.noop.enqueue(1)
    call_command("flush", verbosity=0, stdout=io.StringIO())

    assert client().jobs.count().jobs == left


def test_a_schema_that_the_migration_is_about_to_install_is_not_missing() -> None:
    applied = "graphile_worker", "0001_initial"
    recorder = MigrationRecorder(connections["default"])
    recorder.record_unapplied(*applied)
    try:
        with override_settings(TASKS=tasks_setting(OPTIONS={"SCHEMA": "elsewhere"})):
            call_command("check", databases=["default"], fail_level="WARNING")
    finally:
        recorder.record_applied(*applied)


def test_hidden_rows_are_not_taken_for_an_older_schema() -> None:
    options = connections["default"].settings_dict["OPTIONS"]
    with psycopg.connect(URL, autocommit=True) as connection:
        connection.execute("create role seesnothing")
        connection.execute("grant usage on schema graphile_worker to seesnothing")
        connection.execute("grant select on all tables in schema graphile_worker to seesnothing")
        options["assume_role"] = "seesnothing"
        try:
            with pytest.raises(SystemCheckError) as caught:
                call_command("check", databases=["default"], fail_level="WARNING")
        finally:
            del options["assume_role"]
            connection.execute("drop owned by seesnothing; drop role seesnothing")

    assert "row security" in str(caught.value)
    assert "older" not in str(caught.value)


def test_djangos_check_asks_every_backend() -> None:
    with override_settings(TASKS=tasks_setting(OPTIONS={"DATABASE": "unknown"})):
        with pytest.raises(SystemCheckError, match="'unknown' is not in DATABASES"):
            call_command("check")
        with pytest.raises(CommandError, match="'unknown' is not in DATABASES"):
            call_command("gw", "list")


def test_wrong_options_are_reported_where_tasks_are_imported_first() -> None:
    with override_settings(TASKS=tasks_setting(OPTIONS={"RETRIES": 3})):
        made = task(tasks.noop.func)
        with pytest.raises(ImproperlyConfigured, match="RETRIES"):
            made.enqueue(1)
        with pytest.raises(SystemCheckError, match="RETRIES"):
            call_command("check", databases=["default"])


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ({"DATABASE": "unknown"}, "E002"),
        ({"MAX_ATTEMPTS": 0}, "E003"),
        ({"RETRIES": 3}, "E003"),
        ({"MODULES": "shop.tasks"}, "E003"),
        ({"MODULES": ["shop.missing"]}, "E005"),
        ({"MODULES": ["missing.module"]}, "E005"),
    ],
)
def test_a_wrong_option_is_reported(options: dict[str, Any], number: str) -> None:
    from api import task_backends

    with override_settings(TASKS=tasks_setting(OPTIONS=options)):
        assert [each.id for each in task_backends["default"].check()] == [f"graphile_worker.{number}"]


def test_a_project_without_the_app_is_reported() -> None:
    from api import task_backends

    with override_settings(INSTALLED_APPS=["shop"]):
        assert [each.id for each in task_backends["default"].check()] == ["graphile_worker.E001"]


def test_a_database_other_than_postgresql_is_reported() -> None:
    from api import task_backends
    from django.db import connections

    connections.settings["files"] = {**connections.settings["default"], "ENGINE": "django.db.backends.sqlite3"}
    try:
        with override_settings(TASKS=tasks_setting(OPTIONS={"DATABASE": "files"})):
            assert [each.id for each in task_backends["default"].check()] == ["graphile_worker.E002"]
    finally:
        del connections.settings["files"]
