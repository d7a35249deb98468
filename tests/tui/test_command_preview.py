"""What is copied does what the action does: the action and its command leave two equal databases equal."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from console_fixture import queue_source
from support.task_builders import a_job
from support.warm_program import run_gw

from gw_core import Job, JobSpec, RecoverySettings, Selection
from gw_core.front_ends import CleanupTarget
from gw_tui.actions import (
    Action,
    Add,
    Cancel,
    Cleanup,
    Complete,
    CountExactly,
    Fail,
    FindByKey,
    Forget,
    Pause,
    RemoveByKey,
    Reschedule,
    Resume,
    Retry,
    RunDoctor,
    Sweep,
    Unlock,
    gw_command,
)
from gw_tui.clipboard import command_line

pytestmark = pytest.mark.once

LONG = timedelta(hours=2)
FIXED = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)

FILL = """
truncate _private_jobs, _private_job_queues, _private_tasks, _private_known_crontabs, _private_gw_workers,
  _private_gw_pauses, _private_gw_limits restart identity;
select add_job('mail', '{"n": 1}', queue_name => 'empty');
select add_job('idle'); select add_job('known'); select add_job('limited'); delete from _private_jobs;
select add_job('mail', '{"n": 2}', job_key => 'failed'); select add_job('mail', '{"n": 3}', job_key => 'backoff');
select add_job('mail', '{"n": 4}', job_key => 'waiting', run_at => '2032-01-01Z');
select add_job('mail', '{"n": 5}', job_key => 'running', queue_name => 'held');
select add_job('mail', '{"n": 6}', job_key => 'last', max_attempts => 1);
update _private_jobs set attempts = 25, last_error = 'refused', run_at = '2032-01-01Z' where key = 'failed';
update _private_jobs set attempts = 3, last_error = 'slow', run_at = '2032-01-01Z' where key = 'backoff';
update _private_jobs set attempts = 1, locked_at = now() - interval '1 hour', locked_by = 'dead'
 where key in ('running', 'last');
update _private_job_queues set locked_at = now() - interval '1 hour', locked_by = 'dead' where queue_name = 'held';
insert into _private_gw_workers (id, started_at, last_heartbeat_at, claim_rules_revision, metadata) values
  ('dead', now() - interval '2 hours', now() - interval '1 hour', 0, '{"tasks": ["idle"]}'),
  ('alive', now() - interval '2 hours', now() + interval '1 hour', 2147483647, '{"tasks": ["known"]}');
insert into _private_known_crontabs (identifier, known_since) values ('it''s old', '2026-01-01Z');
insert into _private_gw_limits (task, most_running, field, set_by) values ('limited', 1, 'tenant', 'ann');
insert into _private_gw_pauses (kind, name, paused_by) values ('task', 'it''s paused', 'ann');
"""
# Times that depend on when it ran are compared by their meaning; the limit is hours away from all of them.
STATE = (
    "select identifier, payload::text, queue_name, key, priority, attempts, max_attempts, last_error, flags::text, "
    "jobs.locked_by, revision, case when run_at <= now() then 'due' when run_at <= now() + interval '1 day' "
    "then 'today' else run_at::text end from _private_jobs as jobs join _private_tasks as tasks on tasks.id = task_id "
    "left join _private_job_queues as queues on queues.id = job_queue_id order by payload::text, jobs.id",
    "select queue_name, locked_by from _private_job_queues order by queue_name",
    "select identifier from _private_tasks order by identifier",
    "select identifier from _private_known_crontabs order by identifier",
    "select id from _private_gw_workers order by id",
    "select kind, name, until, reason from _private_gw_pauses order by kind, name",
)

State = list[list[tuple[Any, ...]]]


class Ground:
    """A database that is recreated in the same state."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.hands = psycopg.connect(url, autocommit=True)
        self.hands.execute("set search_path to graphile_worker; set time zone 'UTC'")
        recovery = RecoverySettings(recovery_delay=LONG)
        self.source = queue_source(url, recovery=recovery)

    def recreate(self) -> State:
        self.hands.execute(FILL)
        return self.state()

    def state(self) -> State:
        return [self.hands.execute(query.encode()).fetchall() for query in STATE]

    def seen(self, key: str) -> list[Job]:
        return [each.job for each in self.source.page(Selection.of(job_key=key)).jobs]

    def close(self) -> None:
        self.source.close()
        self.hands.close()


@pytest.fixture
def ground(database_url: str) -> Iterator[Ground]:
    found = Ground(database_url)
    yield found
    found.close()


SPEC = JobSpec(
    task="it's new",
    queue_name="q 1",
    run_at=FIXED,
    max_attempts=7,
    job_key="-k'ey",
    priority=-3,
    flags=["a", "b'c"],
)
PAYLOAD = r'{"text": "it' "'" r's \\ and \"", "n": 90071992547409931}'

ACTS: dict[str, Callable[[Ground], Action]] = {
    "retry of a permanently failed job": lambda at: Retry(jobs=at.seen("failed")),
    "retry of a job between attempts": lambda at: Retry(jobs=at.seen("backoff")),
    "retry of a job that has not failed": lambda at: Retry(jobs=at.seen("waiting")),
    "reschedule": lambda at: Reschedule(jobs=at.seen("waiting"), run_at=FIXED, priority=-5, max_attempts=9),
    "reschedule to another priority": lambda at: Reschedule(jobs=at.seen("waiting"), priority=-5),
    "fail with a reason": lambda at: Fail(jobs=at.seen("waiting"), reason="it's \\ enough"),
    "fail": lambda at: Fail(jobs=at.seen("waiting")),
    "remove": lambda at: Complete(jobs=[*at.seen("waiting"), *at.seen("failed")]),
    "remove by key": lambda at: RemoveByKey(key="waiting", job=at.seen("waiting")[0]),
    "remove by key of a running job": lambda at: RemoveByKey(key="running", job=at.seen("running")[0]),
    "add": lambda _: Add(spec=SPEC, payload=PAYLOAD),
    "add with nothing but a task": lambda _: Add(spec=JobSpec(task="-odd")),
    "unlock": lambda _: Unlock(workers=("dead",)),
    "sweep": lambda _: Sweep(),
    "clear away failed jobs": lambda _: Cleanup(target=CleanupTarget.FAILED_JOBS),
    "clear away unused tasks": lambda _: Cleanup(target=CleanupTarget.UNUSED_TASKS),
    "clear away unused queues": lambda _: Cleanup(target=CleanupTarget.UNUSED_QUEUES),
    "forget": lambda _: Forget(identifier="it's old"),
    "pause a task": lambda _: Pause(target="task:it's new", reason="it's \\ broken"),
    "pause a queue": lambda _: Pause(target="queue:empty"),
    "resume": lambda _: Resume(target="task:it's paused"),
}
NOTHING_HAPPENS = {"retry of a job that has not failed"}
ASKS = {"unlock", "cleanup"}


@pytest.mark.parametrize("name", ACTS)
def test_what_is_copied_does_what_the_act_does(ground: Ground, name: str) -> None:
    before = ground.recreate()
    action = ACTS[name](ground)
    preview = action.preview()
    assert preview is not None
    words = gw_command(preview)
    next(ground.source.run(action))
    done = ground.state()
    assert (done != before) is (name not in NOTHING_HAPPENS)

    assert ground.recreate() == before
    gw(ground.url, command_line(words))
    assert ground.state() == done, words


def gw(url: str, command: str) -> None:
    """Type a command; answer its prompt with yes."""
    program, *words = shlex.split(command)
    assert program == "gw"
    sure = ["--yes"] if words[0] in ASKS else []
    environment = {**os.environ, "DATABASE_URL": url, "NO_COLOR": "1", "GW_RECOVERY_DELAY": "2h"}
    done = run_gw([words[0], *sure, *words[1:]], folder=Path(__file__).parents[2], environment=environment)
    assert done.code in (0, 1), done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "action",
    [
        Sweep(dry_run=True),
        Cleanup(target=CleanupTarget.FAILED_JOBS, dry_run=True),
        RunDoctor(),
        CountExactly(),
        FindByKey(key="k"),
    ],
    ids=lambda action: type(action).__name__,
)
def test_what_only_reads_is_not_offered_to_be_typed(action: Action) -> None:
    assert action.preview() is None


def test_what_is_copied_names_every_job_of_the_action() -> None:
    versions = [a_job(id=job) for job in range(1, 701)]

    assert Retry(jobs=versions).preview() == ["retry", *map(str, range(1, 701))]


def test_a_cancellation_is_copied_as_a_command() -> None:
    assert Cancel(jobs=[a_job(id=3), a_job(id=5)]).preview() == ["cancel", "3", "5"]
