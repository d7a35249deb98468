"""Complete, fail, reschedule and retry jobs: by id, by key and by condition."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from support.cli_program import CliProgram
from support.jobs_in_states import Queue

from gw_core import Client, Selection, TaskRegistry, run_once

TIMES = "write it like 2026-01-31T08:00:00Z, now, +5m or -2h"
DURATIONS = "write it like 90s, 5m, 1h30m, 250ms or 2d"
VERBS = (["complete"], ["fail"], ["retry"], ["reschedule", "--run-at", "now"])


# -- what each does ------------------------------------------------------------------------------------------------


def test_completing_deletes_a_job(gw: CliProgram, queue: Queue) -> None:
    job, other = queue.ready(), queue.ready()

    ended = gw("complete", job, "--json")

    assert ended.json == [{"id": job, "task": "mail", "result": "completed", "reason": None, "locked_by": None}]
    assert (ended.code, queue.ids()) == (0, [other])


def test_failing_leaves_the_reason_given(gw: CliProgram, queue: Queue) -> None:
    job = queue.ready()

    assert gw("fail", job, "--reason", "The customer left").code == 0
    assert queue.rows("select last_error, attempts = max_attempts from graphile_worker._private_jobs") == [
        ("The customer left", True)
    ]


def test_failing_without_a_reason_says_what_graphile_worker_says(gw: CliProgram, queue: Queue) -> None:
    gw("fail", queue.ready())

    assert queue.value("select last_error from graphile_worker._private_jobs") == "Manually marked as failed"


def test_rescheduling_changes_what_was_given_and_nothing_else(gw: CliProgram, queue: Queue) -> None:
    job = queue.backoff(priority=3)

    assert gw("reschedule", job, "--run-at", "2040-01-31T08:00:00Z", "--max-attempts", "7").code == 0
    assert queue.rows(
        "select run_at = '2040-01-31T08:00:00Z', max_attempts, attempts, priority from graphile_worker._private_jobs"
    ) == [(True, 7, 3, 3)]


def test_a_job_that_failed_permanently_runs_again_after_a_retry(gw: CliProgram, queue: Queue) -> None:
    job, ran = queue.failed(), []
    tasks = TaskRegistry()
    tasks.task("mail")(lambda payload: ran.append(payload))

    assert gw("retry", job).code == 0
    run_once(queue.url, tasks=tasks)

    assert (len(ran), queue.ids()) == (1, [])


def test_a_retry_gives_back_all_attempts_of_a_job_that_used_them_up_and_none_otherwise(
    gw: CliProgram, queue: Queue
) -> None:
    ended, waiting = queue.failed(), queue.backoff()

    gw("retry", ended, waiting)

    assert queue.rows("select id, attempts, run_at <= now() from graphile_worker._private_jobs order by id") == [
        (ended, 0, True),
        (waiting, 3, True),
    ]


@pytest.mark.parametrize("command", ["retry", "reschedule"])
def test_workers_are_notified_of_a_job_that_may_run_now(gw: CliProgram, queue: Queue, command: str) -> None:
    job = queue.failed()
    with psycopg.connect(queue.url, autocommit=True) as listener:
        listener.execute('listen "jobs:insert"')
        gw(command, job, *(("--run-at", "now", "--attempts", "0") if command == "reschedule" else ()))
        notifications = list(listener.notifies(timeout=60, stop_after=1))

    assert '"count":1' in notifications[0].payload


def test_a_retry_leaves_a_job_that_has_not_failed(gw: CliProgram, queue: Queue) -> None:
    queue.scheduled()
    before = queue.jobs()

    ended = gw("retry", before[0]["id"], "--json")

    assert (ended.code, ended.json[0]["reason"], queue.jobs()) == (1, "not_failed", before)


# -- which jobs ----------------------------------------------------------------------------------------------------


def test_a_running_job_is_left_alone_and_its_worker_named(gw: CliProgram, queue: Queue) -> None:
    job = queue.running(by="gw-far-7")
    before = queue.jobs()
    skipped = {"id": job, "task": "mail", "result": "skipped", "reason": "locked", "locked_by": "gw-far-7"}

    for verb in VERBS:
        ended = gw(*verb, job, "--json")

        assert (ended.code, ended.json, queue.jobs()) == (1, [skipped], before), verb


def test_what_is_not_there_is_said_to_be_missing(gw: CliProgram, queue: Queue) -> None:
    for verb in VERBS:
        by_id = gw(*verb, 4711, "--json")
        by_key = gw(*verb, "--job-key", "gone\x1b")
        by_condition = gw(*verb, "--task", "unknown", "--yes")

        assert (by_id.code, by_id.json[0]["reason"]) == (6, "not_found"), verb
        assert (by_key.code, r"no job matches 'job_key:gone\x1b'" in by_key.err) == (6, True), verb
        assert (by_condition.code, "no job matches" in by_condition.err) == (6, True), verb


def test_a_job_is_found_by_its_key(gw: CliProgram, queue: Queue) -> None:
    job, _ = queue.ready(job_key="one"), queue.ready(job_key="two")

    gw("complete", "-k", "two")

    assert queue.ids() == [job]


def test_of_several_ids_the_possible_ones_are_done_and_the_others_named(gw: CliProgram, queue: Queue) -> None:
    free, held = queue.ready(), queue.running()

    ended = gw("complete", held, 999, free, free)

    assert ended.code == 1
    assert ended.out.splitlines() == [
        "id\ttask\tresult\treason\tlocked_by",
        f"{free}\tmail\tcompleted\t\t",
        f"{held}\tmail\tskipped\tlocked\tpool-1",
        "999\t\tskipped\tnot_found\t",
    ]
    assert ended.err == "Completed 1 job, skipped 2.\n"


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param(("--state", "failed"), id="state"),
        pytest.param(("--task", "chosen"), id="task"),
        pytest.param(("--queue", "chosen"), id="queue"),
        pytest.param(("--flag", "chosen"), id="flag"),
        pytest.param(("--error", "CHOSEN"), id="text in the error"),
        pytest.param(("--state", "failed", "--task", "chosen", "--queue", "chosen"), id="several at once"),
    ],
)
def test_jobs_are_chosen_by_condition(gw: CliProgram, queue: Queue, condition: tuple[str, ...]) -> None:
    chosen = queue.failed("chosen", queue_name="chosen", flags=["chosen"])
    queue.set(chosen, "last_error = 'It was chosen'")
    others = [queue.ready(), queue.backoff("mail", queue_name="other", flags=["other"])]

    ended = gw("complete", *condition, "--yes")

    assert (ended.code, queue.ids()) == (0, others)


def test_jobs_of_a_worker_are_all_locked(gw: CliProgram, queue: Queue) -> None:
    queue.ready()
    held = queue.running(by="theirs")

    ended = gw("complete", "--worker", "theirs", "--yes", "--json")

    assert [(each["id"], each["reason"]) for each in ended.json] == [(held, "locked")]


def test_a_lock_that_graphile_worker_calls_expired_protects_no_worker_but_keeps_a_job_from_running(
    gw: CliProgram, queue: Queue
) -> None:
    job = queue.running(since="5 hours")
    queue.set(job, "last_error = 'Boom'")

    assert gw("retry", job).code == 1
    assert gw("complete", job).code == 0


# -- being asked ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", [("--all",), ("--state", "failed")], ids=" ".join)
def test_without_a_terminal_a_condition_needs_a_yes(gw: CliProgram, queue: Queue, condition: tuple[str, ...]) -> None:
    queue.failed(), queue.failed()
    before = queue.jobs()

    for verb in VERBS:
        ended = gw(*verb, *condition, stdin=b"")

        assert (ended.code, ended.out, queue.jobs()) == (2, "", before), verb
        assert "2 jobs would be" in ended.err
        assert "pass --yes" in ended.err


@pytest.mark.parametrize(("typed", "left"), [("yes\n", 0), ("y\n", 0), ("no\n", 2), ("\n", 2), ("", 2)])
def test_a_person_is_asked(gw: CliProgram, queue: Queue, typed: str, left: int) -> None:
    queue.failed(), queue.failed()

    ended = gw("complete", "--state", "failed", typed=typed)

    assert re.search(r"Complete 2 jobs \(mail 2\) in \w+@\S+\?", ended.err)
    assert (len(queue.ids()), ended.code) == (left, 1 if left else 0)


def test_the_question_names_the_tasks_that_it_means(gw: CliProgram, queue: Queue) -> None:
    for task, count in {"mail": 3, "slow": 2, "a": 1, "b": 1}.items():
        for _ in range(count):
            queue.failed(task)

    ended = gw("retry", "state:failed", typed="no\n")
    cancelled = gw("cancel", "state:failed", typed="no\n")

    assert "Retry 7 jobs (mail 3, slow 2, a 1, …) in " in ended.err
    assert cancelled.code != 0


def test_a_misspelled_name_in_a_selection_is_suggested(gw: CliProgram, queue: Queue) -> None:
    queue.failed("mail", queue_name="letters")

    assert "did you mean 'mail'?" in gw("retry", "task:mial", "--yes").err
    assert "did you mean 'mail'?" in gw("cancel", "task:mial", "--yes").err
    assert "did you mean 'letters'?" in gw("complete", "--queue", "leters", "--yes").err


def test_a_dry_run_counts_and_changes_nothing(gw: CliProgram, queue: Queue) -> None:
    queue.failed(), queue.failed(), queue.running()
    before = queue.jobs()

    for verb in VERBS:
        ended = gw(*verb, "--all", "--dry-run", "--json")

        assert (ended.code, ended.json) == (0, {"jobs": 2, "skipped": 1, "dry_run": True}), verb
        assert queue.jobs() == before


def test_no_match_can_be_allowed_so_that_a_script_goes_on(gw: CliProgram, queue: Queue) -> None:
    for verb in VERBS:
        for selection in (["--task", "unknown", "--yes"], ["--task", "unknown"], ["--job-key", "unknown"]):
            ended = gw(*verb, *selection, "--allow-none", "--json")

            assert (ended.code, ended.json) == (0, []), (verb, selection)
            assert "No job matches; nothing was" in ended.err
        counted = gw(*verb, "--task", "unknown", "--allow-none", "--dry-run", "--json")
        assert (counted.code, counted.json) == (0, {"jobs": 0, "skipped": 0, "dry_run": True}), verb


def test_allowing_no_match_allows_a_job_that_is_gone_but_nothing_else(gw: CliProgram, queue: Queue) -> None:
    held = queue.running()

    for verb in VERBS:
        assert gw(*verb, 10**9, "--allow-none").code == 0, verb
        assert gw(*verb, held, "--allow-none").code == 1, verb
        assert gw(*verb, "--state", "running", "--allow-none", "--yes").code == 1, verb


WRONG = [
    (("complete",), "select jobs by id"),
    (("complete", "1", "--all"), "--all means every job"),
    (("complete", "tsak:a"), "unknown term 'tsak'"),
    (("complete", "task:a state:"), "a value is missing, as in state:failed (at character 14)"),
    (("complete", "one"), "'one' has no term"),
    (("complete", "0"), "ids are whole numbers from 1"),
    (("complete", "99999999999999999999"), "ids are whole numbers from 1"),
    (("complete", "--state", "gone"), "--state 'gone'"),
    (("reschedule", "1"), "nothing to change"),
    (("reschedule", "1", "--run-at", "soon"), "is not a valid time"),
    (("reschedule", "1", "--run-at", "2026-01-31"), "has no time zone"),
    (("reschedule", "1", "--priority", "40000"), "priority is 40000"),
    (("reschedule", "1", "--attempts", "-1"), "attempts is -1"),
    (("reschedule", "1", "--max-attempts", "0"), "max attempts is 0"),
]


def test_wrong_words_are_rejected_before_anything_is_done(gw: CliProgram, queue: Queue) -> None:
    queue.ready()
    before = queue.jobs()

    for arguments, sentence in WRONG:
        ended = gw(*arguments)

        assert (ended.code, ended.out, ended.err.count("\n"), queue.jobs()) == (2, "", 1, before), arguments
        assert sentence in ended.err


def test_a_time_in_the_past_is_taken_and_remarked(gw: CliProgram, queue: Queue) -> None:
    job = queue.scheduled()

    ended = gw("reschedule", job, "--run-at", "2001-01-01T00:00:00Z")

    assert (ended.code, "is in the past" in ended.err) == (0, True)
    assert queue.value("select run_at < now() from graphile_worker._private_jobs")


# -- batches -------------------------------------------------------------------------------------------------------


def test_many_jobs_go_in_bounded_batches(queue: Queue) -> None:
    queue.rows("select graphile_worker.add_job('mail') from generate_series(1, 2500)")
    with Client(queue.url) as client:
        sizes = [len(batch.changed) for batch in client.jobs.in_batches().complete(Selection.of(task="mail"))]

    assert (sizes, queue.ids()) == ([1000, 1000, 500], [])


def test_to_stop_asking_is_to_stop_between_batches(queue: Queue) -> None:
    queue.rows("select graphile_worker.add_job('mail') from generate_series(1, 1500)")
    with Client(queue.url) as client:
        batches = client.jobs.in_batches().complete(Selection())
        next(batches)

    assert len(queue.ids()) == 500


def test_jobs_added_in_the_meantime_are_not_meant(queue: Queue) -> None:
    queue.rows("select graphile_worker.add_job('mail') from generate_series(1, 1500)")
    with Client(queue.url) as client:
        batches = client.jobs.in_batches().complete(Selection())
        next(batches)
        late = queue.ready()
        list(batches)

    assert queue.ids() == [late]


def test_a_job_that_changes_before_its_turn_is_judged_again(queue: Queue) -> None:
    queue.rows("select graphile_worker.add_job('mail') from generate_series(1, 1001)")
    last = queue.ids()[-1]
    with Client(queue.url) as client:
        batches = client.jobs.in_batches().complete(Selection.of(state="ready"))
        next(batches)
        queue.set(last, "run_at = now() + interval '1 day'")
        list(batches)

    assert queue.ids() == [last]


INTERRUPTED = """
import os, signal
from gw_cli.main import main
from gw_core.front_ends import JobBatches

def first_batch_then_ctrl_c(self, jobs, **options):
    del JobBatches.complete
    for number, batch in enumerate(self.complete(jobs, **options)):
        if number == 0:
            os.kill(os.getpid(), signal.SIGINT)
        yield batch

JobBatches.complete = first_batch_then_ctrl_c
main()
"""


def test_an_interruption_ends_after_the_batch_and_says_what_stays_done(queue: Queue, tmp_path: Path) -> None:
    queue.rows("select graphile_worker.add_job('mail') from generate_series(1, 2500)")

    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "complete", "--all", "--yes", "--json"],
        env={**os.environ, "DATABASE_URL": queue.url, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, len(queue.ids())) == (-signal.SIGINT, 1500)
    assert "Completed 1,000 jobs of 2,500 before this ended" in ended.stderr
    assert ended.stdout.count('"completed"') == 1000
    assert ended.stdout.endswith("]\n")


def test_a_reader_that_goes_away_ends_it_and_what_was_done_is_said(queue: Queue, tmp_path: Path) -> None:
    queue.rows("select graphile_worker.add_job(repeat('t', 100)) from generate_series(1, 2500)")

    with subprocess.Popen(
        [sys.executable, "-m", "gw_cli", "complete", "--all", "--yes"],
        env={**os.environ, "DATABASE_URL": queue.url, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        message = process.stderr.read()

    assert (process.returncode, len(queue.ids())) == (-signal.SIGPIPE, 1500)
    assert message == "Completed 1,000 jobs of 2,500 before this ended; the others are as they were.\n"


def test_a_terminal_lists_the_jobs_until_they_are_many(
    gw: CliProgram, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gw_cli.output.is_terminal", lambda stream: True)
    queue.rows("select graphile_worker.add_job(e'esc\\x1b[2J') from generate_series(1, 30)")
    held = queue.running()

    ended = gw("complete", "--all", "--yes")

    assert len(ended.out.splitlines()) == 21
    assert f"Skipped job {held} (mail): worker pool-1 runs it" in ended.out
    assert "\x1b" not in ended.out
    assert ended.err == "Completed 30 jobs, skipped 1.\n"


# -- unlock --------------------------------------------------------------------------------------------------------


def test_unlocking_frees_jobs_and_queues_of_the_named_worker_only(gw: CliProgram, queue: Queue) -> None:
    mine, theirs = queue.running(by="dead", queue_name="q"), queue.running(by="other")

    ended = gw("unlock", "dead", "--yes", "--json")

    assert ended.json == [
        {"worker": "dead", "result": "unlocked", "jobs": 1, "queues": 1, "heartbeat_age_seconds": None}
    ]
    assert queue.rows("select id, locked_by from graphile_worker._private_jobs order by id") == [
        (mine, None),
        (theirs, "other"),
    ]
    assert queue.value("select locked_by from graphile_worker._private_job_queues") is None


def test_unlocking_warns_when_heartbeats_still_arrive(gw: CliProgram, queue: Queue) -> None:
    queue.running(by="alive")
    before = time.monotonic()
    queue.heartbeat("alive", ago="20 seconds")

    ended = gw("unlock", "alive", "--dry-run")

    message = re.search(r"'alive' may be alive: its last heartbeat was (\d+) s ago", ended.err)
    assert message is not None
    assert 20 <= int(message[1]) <= 21 + time.monotonic() - before
    assert queue.value("select locked_by from graphile_worker._private_jobs") == "alive"


def test_unlocking_needs_a_yes(gw: CliProgram, queue: Queue) -> None:
    queue.running(by="dead")

    ended = gw("unlock", "dead", stdin=b"")

    assert (ended.code, "1 job and 0 queues would be unlocked" in ended.err) == (2, True)
    assert queue.value("select locked_by from graphile_worker._private_jobs") == "dead"


def test_a_worker_that_holds_nothing_is_said_to(gw: CliProgram, queue: Queue) -> None:
    ended = gw("unlock", "nobody\x1b[2J", "--yes")

    assert (ended.code, r"'nobody\x1b[2J' holds no job and no queue" in ended.err) == (6, True)


def test_workers_are_notified_of_what_was_unlocked(gw: CliProgram, queue: Queue) -> None:
    queue.running(by="dead")
    with psycopg.connect(queue.url, autocommit=True) as listener:
        listener.execute('listen "jobs:insert"')
        gw("unlock", "dead", "-y")
        notifications = list(listener.notifies(timeout=60, stop_after=1))

    assert '"count":1' in notifications[0].payload


def test_a_job_that_expires_is_added_shown_and_retried(gw: CliProgram, queue: Queue, tmp_path: Path) -> None:
    later = gw("add", "mail", "--expires-at", "2096-01-01T08:00:00Z").out.strip()
    shown = gw("show", later, "--json").json
    assert (shown["expires_at"], shown["flags"]) == ("2096-01-01T08:00:00Z", [])
    assert shown["reasons"][-1]["code"] == "expires"

    past = gw("add", "mail", "--expires-at", "2026-01-01T08:00:00Z").out.strip()
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "mail.py").write_text("def mail(payload): ...\n")
    assert gw("run", "--once").code == 0
    assert [str(each["id"]) for each in gw("list", "state:failed", "--json").json] == [past]
    shown = gw("show", past, "--json").json
    assert shown["last_error"] == "expired: did not start by 2026-01-01T08:00:00Z"
    assert [each["code"] for each in shown["reasons"]] == ["expired"]

    gw("retry", past)
    assert gw("run", "--once").code == 0
    assert gw("list", "--json").json == []

    for when, message in (
        ("now", "expires_at must lie after now"),
        ("-1h", "expires_at must lie after now"),
        ("soon", f"--expires-at: 'soon' is not a valid time; {TIMES}"),
    ):
        ended = gw("add", "mail", "--expires-at", when)
        assert (ended.code, ended.err) == (2, f"gw: {message}\n")


def test_a_job_is_added_after_others_and_once_within_a_time(gw: CliProgram, queue: Queue) -> None:
    first, second = (gw("add", "mail").out.strip() for _ in range(2))
    waiting = gw("add", "report", "--after", first, "--after", second, "--on-failure", "cancel").out.strip()
    assert [str(each["id"]) for each in gw("list", "state:waiting", "--json").json] == [waiting]

    added, again = (gw("add", "mail", "-p", "[1]", "--unique-for", "1h", terminal=True) for _ in range(2))
    assert added.out.startswith("Added job ")
    assert again.out == added.out.replace("Added job", "Left as it is: job")

    for options, message in (
        (("--after", "x"), "--after 'x': give a whole number"),
        (("--on-failure", "run"), "on_failure was given without jobs to wait for; give after as well"),
        (
            ("--after", first, "--on-failure", "no"),
            "'no' is not a value of on_failure; give one of hold, cancel, run",
        ),
        (
            ("--after", first, "--unique-for", "1h"),
            "a job that is unique for a time takes neither after nor a job key mode but 'replace'",
        ),
        (("--unique-for", "0s"), "unique_for must be more than 0 and at most ten years"),
        (("--unique-for", "600w"), "unique_for must be more than 0 and at most ten years"),
        (("--unique-for", "soon"), f"--unique-for: 'soon' is not a duration; {DURATIONS}"),
        (("--unique-for", "-1h"), f"--unique-for: '-1h' is not a duration; {DURATIONS}"),
    ):
        ended = gw("add", "report", *options)
        assert (ended.code, ended.err) == (2, f"gw: {message}\n")
