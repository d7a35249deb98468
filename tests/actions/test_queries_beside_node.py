"""Recurring tasks, cancelling and the console on a queue that the Node.js worker installed, not upgraded."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli_program import CliProgram
from support.jobs_in_states import Queue

pytestmark = pytest.mark.interop


def test_recurring_tasks(gw: CliProgram, nodes: Queue, tmp_path: Path) -> None:
    (tmp_path / "crontab").write_text("* * * * * mail ?id=often\n")
    nodes.rows(
        "insert into graphile_worker._private_known_crontabs (identifier, known_since, last_execution)"
        " values ('often', now() - interval '1 hour', now())"
    )

    assert gw("cron", "validate", "crontab").code == 0
    assert [each["id"] for each in gw("cron", "list", "--json").json] == ["often"]
    assert gw("cron", "run", "often").code == 0
    assert nodes.rows("select task_identifier from graphile_worker.jobs") == [("mail",)]
    assert gw("cron", "forget", "often").code == 0
    assert gw("cron", "list", "--json").json == []


def test_cancelling_says_that_it_needs_our_line_and_works_with_it(gw: CliProgram, nodes: Queue) -> None:
    waiting = nodes.ready()
    rejected = gw("cancel", waiting)
    migrated = gw("migrate")
    ended = gw("cancel", waiting, "--timeout", "0s", "--json")

    assert (rejected.code, "gw migrate --schema graphile_worker" in rejected.err) == (5, True)
    assert (migrated.code, ended.code) == (0, 1)
    assert [(each["id"], each["result"]) for each in ended.json] == [(waiting, "not_running")]


def test_the_console(gw: CliProgram, nodes: Queue) -> None:
    nodes.add("mail")
    nodes.failed()
    nodes.running(by="worker-8f2c")

    shown, as_json = gw("tui", "--once"), gw("tui", "--once", "--json")

    counts = {state: each["count"] for state, each in as_json.json["states"].items()}
    assert counts == {"ready": 1, "scheduled": 0, "waiting": 0, "running": 1, "backoff": 0, "failed": 1}
    assert (shown.code, as_json.code, "No alerts" in shown.out) == (0, 0, True)
