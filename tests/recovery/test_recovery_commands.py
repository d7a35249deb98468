"""`gw sweep` and `gw workers`, as processes."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from support.recovery_fixture import RecoveryFixture, minutes
from support.shell import CliResult, Shell
from support.time_range import MeasuredBlock
from support.waiting import wait_until

pytestmark = pytest.mark.acceptance


@pytest.fixture
def shell(tmp_path: Path, ward: RecoveryFixture) -> Shell:
    return Shell(tmp_path, database=ward.url)


def report_of(ended: CliResult) -> Any:
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_sweep_gives_back_and_says_what(shell: Shell, ward: RecoveryFixture) -> None:
    ward.dead_worker()
    job_id = ward.locked_by("dead", queue_name="q")

    with MeasuredBlock(ward.now) as block:
        ended = shell.gw("sweep", "--recovery-delay", "90s")

    assert (ended.code, ended.err) == (0, "Recovered 1 job and released 1 queue.\n")
    assert ended.out.splitlines()[1].startswith("dead\tstale\t")
    assert ward.job(job_id)["run_at"] in block.later(90)
    assert shell.gw("sweep").err == "No worker counts as dead.\n"


def test_sweep_prints_a_dry_run_as_json_and_changes_nothing(shell: Shell, ward: RecoveryFixture) -> None:
    ward.dead_worker()
    ward.locked_by("dead")

    report = report_of(shell.gw("sweep", "--dry-run", "--json"))

    assert (report["dry_run"], report["jobs"], [worker["id"] for worker in report["workers"]]) == (True, 1, ["dead"])
    assert list(report) == ["dry_run", "jobs", "queues", "skipped", "workers"]
    assert ward.held() == ["dead"]


def test_a_sweep_that_another_session_blocks_fails_and_names_it(shell: Shell, ward: RecoveryFixture) -> None:
    ward.dead_worker()
    ward.locked_by("dead")

    with ward.locking(
        "select pg_advisory_xact_lock(1196905043, 1398228304), set_config('application_name', 'rust', false)"
    ):
        ended = shell.gw("sweep")

    assert (ended.code, ended.out, ward.held()) == (3, "", ["dead"])
    assert re.fullmatch(r"gw: another session is sweeping: process \d+ of role \w+ \(application rust\)\n", ended.err)


def test_sweep_takes_a_node_workers_locks_only_when_asked_to(shell: Shell, ward: RecoveryFixture) -> None:
    ward.locked_by("pool-node", locked_for=minutes(20))

    assert report_of(shell.gw("sweep", "--json"))["jobs"] == 0
    assert report_of(shell.gw("sweep", "--json", "--sweep-threshold", "0s"))["jobs"] == 0
    assert report_of(shell.gw("sweep", "--json", "--orphans-after", "15m"))["jobs"] == 1


def test_sweep_takes_its_options_from_the_file_and_the_environment(shell: Shell, ward: RecoveryFixture) -> None:
    for name in ("first", "second"):
        ward.a_worker(name, inactive_for=minutes(2))
        ward.locked_by(name, locked_for=minutes(30), flags=["mine"] if name == "second" else [])
    shell.write("gw.toml", 'sweep-threshold = "1m"\nresilient-flag = ["mine"]\nresilient-multiplier = 2.5\n')

    assert [each["id"] for each in report_of(shell.gw("sweep", "--json"))["workers"]] == ["first"]
    assert report_of(shell.gw("sweep", "--json", GW_RESILIENT_MULTIPLIER="1.5"))["jobs"] == 1


def test_workers_are_listed(shell: Shell, ward: RecoveryFixture) -> None:
    ward.dead_worker()
    ward.a_worker("alive")
    ward.locked_by("pool-node", locked_for=minutes(20))

    found = report_of(shell.gw("workers", "--json"))

    assert {each["id"]: each["state"] for each in found} == {
        "dead": "stale",
        "alive": "running",
        "pool-node": "no_heartbeat",
    }
    assert [each["jobs"] for each in found if each["id"] == "pool-node"] == [1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(("sweep", "--sweep-threshold", "5"), "--sweep-threshold '5': give a duration", id="no unit"),
        pytest.param(("sweep", "--resilient-multiplier", "0.5"), "give a number from 1", id="a small multiplier"),
        pytest.param(
            ("run", "--sweep-threshold", "40s", "--heartbeat-interval", "21s"),
            "--sweep-threshold (40s) must be at least twice --heartbeat-interval (21s)",
            id="too short",
        ),
        pytest.param(
            ("run", "--sweep-threshold", "40s", "--sweep-interval", "41s"),
            "--sweep-interval (41s) must be at most --sweep-threshold (40s)",
            id="too rare",
        ),
        pytest.param(("run", "--max-rss", "lots"), "give a size like 512M or 2G", id="no size"),
    ],
)
def test_wrong_durations_are_rejected(shell: Shell, arguments: tuple[str, ...], words: str) -> None:
    shell.write("tasks/hello.py", "def hello(payload):\n    pass\n")

    ended = shell.gw(*arguments)

    assert ended.code == 2
    assert words in ended.err


def test_settings_are_named_where_they_were_given(shell: Shell) -> None:
    shell.write("gw.toml", 'heartbeat-interval = "21s"\n')
    shell.write("tasks/hello.py", "def hello(payload):\n    pass\n")

    ended = shell.gw("run", GW_SWEEP_THRESHOLD="40s")

    assert "GW_SWEEP_THRESHOLD (40s) must be at least twice heartbeat-interval (21s)" in ended.err


def test_a_run_takes_over_from_a_killed_one(shell: Shell, ward: RecoveryFixture) -> None:
    shell.write("tasks/slow.py", "import time\n\ndef slow(payload):\n    time.sleep(600)\n")
    other = Shell(shell.folder / "other", database=ward.url)
    other.write("tasks/slow.py", "def slow(payload):\n    pass\n")
    options = ("run", "--sweep-threshold", "6s", "--recovery-delay", "0s", "--poll-interval", "50ms")
    job_id = ward.add("slow", queue_name="q")
    with shell.started(*options) as running:
        running.says("Recovery is on: jobs of workers without a heartbeat for 6s are recovered, to run 0s later")
        dead = wait_until(lambda: ward.job(job_id)["locked_by"], what="the job to be claimed")
        running.send(signal.SIGKILL)
        running.end()
    ward.let_time_pass(dead)
    with other.started(*options) as running:
        running.says("Recovered 1 job and released 1 queue of dead workers: gw-")
        running.says(f"Completed task {job_id} (slow")
        running.send(signal.SIGTERM)
        running.end()

    assert (ward.jobs(), ward.held(), ward.workers()) == ([], [], [])


def test_a_killed_worker_is_not_reported_as_one_that_ignores_pauses(shell: Shell, ward: RecoveryFixture) -> None:
    shell.write("tasks/slow.py", "import time\n\ndef slow(payload):\n    time.sleep(600)\n")
    job_id = ward.add("slow")
    with shell.started("run") as running:
        dead = wait_until(lambda: ward.job(job_id)["locked_by"], what="the job to be claimed")
        running.send(signal.SIGKILL)
        running.end()
    paused = shell.gw("pause", "task:slow")
    found = {
        each["check"]: each for each in json.loads(shell.gw("doctor", "--json").out) if each["status"] != "warning"
    }

    assert re.search(rf"worker '{dead}' has not confirmed it .* or may have died", paused.err)
    assert re.fullmatch(
        rf"{dead} has not confirmed the pauses and limits, last heartbeat \d+s ago: it may .* or may have died",
        found["pauses"]["message"],
    )
    assert "if its process still runs; otherwise" in found["pauses"]["fix"]
    assert found["locks"]["message"] == "1 job is locked, none by a worker known to be dead"
