"""The console's reports match the rows; the commands it copies work; jobs it retries run again."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from console_fixture import Console, console_on, queue_source
from psycopg.rows import dict_row

from gw_core import Client, Job, JobSpec, JobState, Selection
from gw_core.front_ends import FoundJob
from gw_tui.actions import Action, Complete, Fail, Reschedule, Restore, Retry
from gw_tui.actions.log import ActionLog

pytestmark = pytest.mark.once

ROUNDS = 20
SEED = 20260301

Row = dict[str, Any]
Rows = dict[int, Row]

FILL = """
update _private_jobs set attempts = max_attempts, last_error = 'refused' where id % 4 = 0;
update _private_jobs set attempts = 2, last_error = 'slow', run_at = now() + interval '1 hour' where id % 4 = 1;
update _private_jobs set run_at = now() + interval '1 day' where id % 8 = 2;
update _private_jobs set locked_at = now(), locked_by = 'worker-' || id % 3 where id % 10 = 3;
"""
# What may happen between the query and the action: a worker takes a job, another session changes one, one ends.
CONCURRENT_CHANGES = (
    "update _private_jobs set locked_at = now(), locked_by = 'quick' where id = %s and locked_at is null",
    "update _private_jobs set attempts = least(attempts + 1, max_attempts - 1), updated_at = now() where id = %s",
    "delete from _private_jobs where id = %s",
)


@pytest.fixture
def url(database_url: str) -> Iterator[str]:
    """A queue with jobs in every state."""
    with Client(database_url) as client:
        client.add_many(
            [
                JobSpec(
                    task=f"task_{n % 3}",
                    payload={"n": n},
                    queue_name=f"q{n % 5}" if n % 3 == 0 else None,
                    job_key=f"k{n}" if n % 7 == 0 else None,
                    flags=["big"] if n % 6 == 0 else [],
                )
                for n in range(200)
            ]
        )
    with psycopg.connect(database_url, autocommit=True) as hands:
        hands.execute("set search_path to graphile_worker")
        hands.execute(FILL)
    return database_url


@pytest.fixture
def source(url: str) -> Iterator[Any]:
    found = queue_source(url)
    yield found
    found.close()


def table(url: str) -> Rows:
    with psycopg.connect(url, row_factory=dict_row) as hands:
        rows = hands.execute(
            "select jobs.*, payload::text as payload, identifier from graphile_worker._private_jobs as jobs "
            "join graphile_worker._private_tasks as tasks on tasks.id = task_id"
        ).fetchall()
    return {row["id"]: row for row in rows}


# -- what must be so after each action -------------------------------------------------------------------------------


def retried(before: Row, after: Row | None) -> None:
    assert after is not None
    assert after["is_available"]
    assert after["attempts"] < after["max_attempts"]
    assert after["run_at"] <= after["updated_at"]
    unchanged(before, after, "attempts", "run_at", "updated_at", "is_available", "revision", "last_error")


def rescheduled(before: Row, after: Row | None) -> None:
    assert after is not None
    assert after["priority"] == 7
    assert after["run_at"] > before["updated_at"]
    unchanged(before, after, "priority", "run_at", "updated_at", "revision")


def failed(before: Row, after: Row | None) -> None:
    assert after is not None
    assert after["attempts"] == after["max_attempts"]
    assert not after["is_available"]
    assert after["last_error"] == "enough"
    unchanged(before, after, "attempts", "updated_at", "is_available", "revision", "last_error")


def removed(_: Row, after: Row | None) -> None:
    assert after is None


def unchanged(before: Row, after: Row | None, *but: str) -> None:
    assert after is not None
    assert {name: value for name, value in after.items() if name not in but} == {
        name: value for name, value in before.items() if name not in but
    }


Check = Callable[[Row, Row | None], None]
KINDS: Sequence[tuple[Callable[[Sequence[Job]], Action], Check]] = (
    (lambda jobs: Retry(jobs=jobs), retried),
    (lambda jobs: Reschedule(jobs=jobs, run_at=timedelta(hours=2), priority=7), rescheduled),
    (lambda jobs: Fail(jobs=jobs, reason="enough"), failed),
    (lambda jobs: Complete(jobs=jobs), removed),
)


def test_twenty_random_acts_did_to_every_row_what_they_say_and_nothing_to_any_other(url: str, source: Any) -> None:
    dice = random.Random(SEED)
    reasons: set[str] = set()
    for _ in range(ROUNDS):
        page = source.page(Selection(), limit=200).jobs
        chosen = dice.sample(page, min(12, len(page)))
        disturb(url, dice, chosen)
        make, check = dice.choice(KINDS)
        before = table(url)

        result = next(source.run(make([each.job for each in chosen])))

        after = table(url)
        done, skipped = {int(each) for each in result.done}, {int(each.what) for each in result.skipped}
        assert done | skipped == {each.job.id for each in chosen}
        assert not done & skipped
        for job_id in done:
            check(before[job_id], after.get(job_id))
        for job_id in before.keys() - done:
            unchanged(before[job_id], after.get(job_id))
        assert after.keys() <= before.keys()
        reasons |= {each.why.split(" (")[0].split(";")[0].split(" by ")[0] for each in result.skipped}
    assert {"locked", "changed", "gone"} <= reasons


def disturb(url: str, dice: random.Random, jobs: Sequence[FoundJob]) -> None:
    with psycopg.connect(url, autocommit=True) as hands:
        hands.execute("set search_path to graphile_worker")
        for statement, found in zip(CONCURRENT_CHANGES, dice.sample(jobs, len(CONCURRENT_CHANGES)), strict=True):
            hands.execute(statement, (found.job.id,))


def test_removed_jobs_come_back_with_everything_that_mattered(url: str, source: Any) -> None:
    before = table(url)
    page = [each for each in source.page(Selection(), limit=200).jobs if each.job.locked_by is None]

    gone = next(source.run(Complete(jobs=[each.job for each in page])))
    back = next(source.run(Restore(jobs=gone.removed)))

    after = table(url)
    assert len(back.done) == len(gone.done) == len(page)
    for old, new in zip(gone.done, back.done, strict=True):
        kept = ("identifier", "payload", "key", "flags", "priority", "run_at", "job_queue_id")
        assert {name: after[int(new)][name] for name in kept} == {name: before[int(old)][name] for name in kept}


# -- what is copied can be typed -------------------------------------------------------------------------------------


def gw(url: str, command: str) -> str:
    words = shlex.split(command)
    assert words[0] == "gw"
    environment = {**os.environ, "DATABASE_URL": url, "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "gw_cli", *words[1:]],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def copied(url: str, filter_: str, choice: str) -> tuple[int, str]:
    """Copy what would do an action to the first job of a list by the console's own keys."""
    found: list[tuple[int, str]] = []

    async def inside() -> None:
        app = console_on(
            queue_source(url),
            screen="jobs",
            filter=filter_,
        )
        async with app.run_test(size=(80, 24)) as pilot:
            console = Console(app, pilot, app.state.source)
            await console.until(lambda: console.is_on("jobs") and console.table("#jobs").keys)
            await pilot.pause()
            (target,) = console.screen("jobs").targets()
            await console.press("Y")
            await console.reach("Choose")
            await pilot.pause()
            app.screen.dismiss(choice)
            await console.until(lambda: app.clipboard)
            found.append((target.job.id, app.clipboard))

    asyncio.run(inside())
    return found[0]


@pytest.mark.parametrize(
    ("choice", "filter_"),
    [
        ("retry", "state:failed"),
        ("reschedule", "state:failed"),
        ("fail", "state:scheduled"),
        ("complete", "state:scheduled"),
        ("unlock", "state:running"),
    ],
)
def test_what_was_copied_does_the_act_when_it_is_typed(url: str, choice: str, filter_: str) -> None:
    job_id, text = copied(url, filter_, choice)
    before = table(url)[job_id]

    gw(url, f"{text} --yes" if choice == "unlock" else text)  # the prompt is answered with yes

    after = table(url).get(job_id)
    match choice:
        case "retry":
            retried(before, after)
        case "fail":
            assert after is not None
            assert after["attempts"] == after["max_attempts"]
        case "complete":
            assert after is None
        case "unlock":
            assert after is not None
            assert (before["locked_by"] is None, after["locked_by"]) == (False, None)
        case _:
            assert after is not None
            assert after["run_at"] != before["run_at"]


# -- what is retried runs again --------------------------------------------------------------------------------------


def test_a_job_retried_from_the_console_is_run_by_a_real_worker(url: str, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    for number in range(3):
        (tasks / f"task_{number}.py").write_text(
            "from pathlib import Path\n\n\ndef run(payload, context):\n"
            f"    Path({str(tmp_path)!r}, f'ran-{{context.job.id}}').touch()\n"
        )
    job_id = retried_by_keys(url, tmp_path / "actions.jsonl")

    gw(url, f"gw run --once --tasks {shlex.quote(str(tasks))}")

    assert (tmp_path / f"ran-{job_id}").exists()
    assert job_id not in table(url)
    (line,) = (tmp_path / "actions.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["completed"] == [str(job_id)]


def retried_by_keys(url: str, log: Path) -> int:
    """Retry the first failed job by the key the screen names."""
    found: list[int] = []

    async def inside() -> None:
        app = console_on(
            queue_source(url),
            screen="jobs",
            filter="state:failed",
            action_log=log,
        )
        async with app.run_test(size=(80, 24)) as pilot:
            console = Console(app, pilot, app.state.source)
            await console.until(lambda: console.is_on("jobs") and console.table("#jobs").keys)
            await pilot.pause()
            (target,) = console.screen("jobs").targets()
            assert "r Retry" in console.text
            await console.press("r")
            await console.until(lambda: app.action_runner.last is not None)
            found.append(target.job.id)

    asyncio.run(inside())
    return found[0]


def test_the_log_of_a_real_removal_can_be_added_again(url: str, source: Any, tmp_path: Path) -> None:
    log = ActionLog(tmp_path / "actions.jsonl")
    # Failed jobs are not restored this way: they would run again.
    ready = Selection.of(state=JobState.READY)
    page = [each for each in source.page(ready, limit=50).jobs if each.job.locked_by is None][:5]
    action = Complete(jobs=[each.job for each in page])
    before = table(url)
    log.note(source.info, action, next(source.run(action)))

    jobs = [each["job"] for each in json.loads(log.path.read_text("utf-8"))["deleted"]]
    (tmp_path / "jobs.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in jobs))
    gw(url, f"gw add --from {shlex.quote(str(tmp_path / 'jobs.jsonl'))}")

    after = table(url)
    new = [row for job_id, row in after.items() if job_id not in before]
    assert len(new) == len(page) == 5
    kept = ("identifier", "key", "flags", "priority", "run_at", "job_queue_id")
    assert [{name: row[name] for name in kept} for row in new] == [
        {name: before[each.job.id][name] for name in kept} for each in page
    ]
