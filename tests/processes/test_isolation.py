"""`isolation="process"`: a task in a process of its own ends as it would in a thread, and can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from textwrap import indent
from typing import Any, cast

import isolated_tasks as theirs
import pytest
from supervised import CHECKOUT
from support.process_state import is_alive
from support.queue_fixture import DEADLINE, LogRecorder, QueueFixture, ms
from support.task_builders import a_job, attempt
from support.waiting import wait_until

from gw_core import GiveUp, Plugin, Reject, Runner, TaskRegistry, task
from gw_core.errors import JobRejectedError
from gw_core.events import JobCompleted, JobErrored, JobReturned
from gw_core.execution import process_pool
from gw_core.front_ends import Failed, Outcome, TaskLoadError, load_app, load_folder
from gw_core.worker import timeouts


@pytest.fixture(scope="module", autouse=True)
def _no_process_is_left() -> Iterator[None]:
    yield
    process_pool.PROCESSES.end_idle()
    wait_until(lambda: not leaders())


def leaders() -> list[Any]:
    """Return the processes that lead a group of processes of a task."""
    return list(process_pool.GROUPS._leaders)


def isolated(*functions: Callable[..., object], **options: Any) -> TaskRegistry:
    registry = TaskRegistry()
    for function in functions:
        registry.register(function.__name__, task(isolation="process", **options)(function))
    return registry


def run(registry: TaskRegistry, text: str = "{}", log: LogRecorder | None = None) -> tuple[Outcome, LogRecorder]:
    """Run the only task once."""
    log = log or LogRecorder()
    (found,) = registry
    job = a_job(text=text, task=found.identifier)
    return attempt(found, job, log=log), log


def in_thread(function: Callable[..., object], text: str) -> tuple[Outcome, LogRecorder]:
    registry = TaskRegistry()
    registry.register(function.__name__, function)
    return run(registry, text)


# -- the same ends ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "payload"),
    [
        (theirs.returns, "{}"),
        (theirs.typed, '{"to": "you"}'),
        (theirs.typed, '{"to": 7}'),
        (theirs.returns, '{"n": 1e400}'),
        (theirs.raises, "{}"),
        (theirs.raises_without_words, "{}"),
        (theirs.raises_silently, "{}"),
        (theirs.gives_up, "{}"),
        (theirs.retries, "{}"),
        (theirs.snoozes, "{}"),
        (theirs.exits, "{}"),
        (theirs.exits_with_an_object, "{}"),
        (theirs.exits_with_a_boolean, "{}"),
        (theirs.returns_a_generator, "{}"),
        (theirs.batch, "[1, 2, 3, 4]"),
        (theirs.batch, "[2, 4]"),
        (theirs.batch_of_another_length, "[2, 4]"),
        (theirs.asynchronous, "{}"),
    ],
)
def test_a_run_in_a_process_ends_as_one_in_a_thread(function: Callable[..., object], payload: str) -> None:
    here, here_log = in_thread(function, payload)
    there, there_log = run(isolated(function), payload)

    def shown(outcome: Any) -> object:
        names = ("message", "delay", "permanent", "payload", "reason", "is_final")
        return type(outcome), {name: getattr(outcome, name) for name in names if hasattr(outcome, name)}

    assert shown(there) == shown(here)
    assert there_log.messages == here_log.messages


@pytest.mark.parametrize("payload", ["card", "network", "table", "broken rule"])
def test_retry_rules_decide_in_a_process_as_in_a_thread(payload: str) -> None:
    registry = TaskRegistry()
    registry.register("with_rules", theirs.with_rules)
    there, _ = run(registry, f'"{payload}"')
    in_this_process = TaskRegistry()
    in_this_process.task("with_rules", retry=theirs.RULES)(theirs.with_rules.function)
    here = attempt(in_this_process.get("with_rules"), a_job(payload))

    assert isinstance(there, Failed)
    assert isinstance(here, Failed)
    assert (there.message, there.delay, there.permanent) == (here.message, here.delay, here.permanent)
    assert there.permanent is (payload in ("card", "table"))


def test_what_is_no_job_is_named_by_its_class() -> None:
    outcome, _ = run(isolated(theirs.adds_what_is_no_job))

    assert isinstance(outcome, Failed)
    assert outcome.message.startswith("InvalidJobError: several jobs are added as a list of JobSpec, and str was given")


def test_retry_rules_that_a_process_cannot_find_are_rejected() -> None:
    registry = isolated(theirs.returns, retry={OSError: GiveUp})

    with pytest.raises(TaskLoadError, match="write @task above its def"):
        registry.check_isolated()


def test_an_error_brings_its_traceback_along() -> None:
    outcome, _ = run(isolated(theirs.raises))

    assert isinstance(outcome, Failed)
    assert type(outcome.error).__name__ == "CardDeclinedError"
    assert "raise CardDeclinedError(" in str(outcome.error.__cause__)


def test_processes_are_used_again() -> None:
    registry = isolated(theirs.says_who)
    pids = {tuple(run(registry)[1].of("info")) for _ in range(5)}

    assert len(pids) == 1
    assert pids != {(str(os.getpid()),)}


# -- ends that only a process has -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "how"),
    [
        (theirs.kills_itself, "was ended by SIGKILL, possibly out of memory"),
        (theirs.crashes, "was ended by SIGSEGV"),
        (theirs.leaves, "ended with exit code 3"),
    ],
)
def test_a_process_that_dies_fails_the_attempt_and_says_how(function: Callable[..., object], how: str) -> None:
    outcome, _ = run(isolated(function))

    assert isinstance(outcome, Failed)
    assert outcome.message == f"IsolatedProcessError: the task's process {how}"


@pytest.mark.parametrize(
    "text",
    [
        "\xff\xff\xff\xff",
        "\xff\xff\xff\xff and more",
        "hello\n",
        "123 lines\n",
        "\x00\x00\x00\x00",
        "\x00\x00\x00\x01\xc1",
    ],
    ids=["a negative length", "with more behind it", "text", "digits", "no message", "a message of nonsense"],
)
def test_what_a_task_writes_to_the_line_fails_its_job_and_does_not_hang_the_thread(text: str) -> None:
    outcome, _ = run(isolated(theirs.writes_to_the_line), json.dumps(text))

    assert isinstance(outcome, Failed)
    assert outcome.message.startswith("IsolatedProcessError: the task's process wrote to the worker's own line: ")


def test_a_process_that_died_while_it_was_idle_does_not_fail_the_next_job() -> None:
    registry = isolated(theirs.says_who)
    _, log = run(registry)
    # It looks alive when it is taken, and dies before it receives the job.
    pid = int(log.of("info")[-1])
    os.kill(pid, signal.SIGSTOP)
    killer = threading.Timer(0.2, os.kill, (pid, signal.SIGKILL))
    killer.start()
    outcome, again = run(registry)
    killer.join()

    assert type(outcome).__name__ == "Completed"
    assert int(again.of("info")[-1]) != pid


# -- where tasks are found --------------------------------------------------------------------------------------------

SOURCE = """
import os
from gw_core import task, TaskRegistry
from _helper import suffix

@task("who", isolation="process", timeout=30)
def run(payload, context):
    context.logger.info(f"{__name__.split('.')[-1]} {os.getpid()}{suffix}")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    path = list(sys.path)
    folder = tmp_path / "tasks"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "who.py").write_text(SOURCE)
    (folder / "_helper.py").write_text("suffix = '!'\n")
    yield folder
    sys.path[:] = path
    sys.modules.pop("_helper", None)


def test_a_task_of_a_folder_is_found_with_its_helpers(folder: Path) -> None:
    loaded = load_folder(folder)
    assert loaded.errors == ()
    (found,) = loaded.registry
    outcome, log = run(loaded.registry)

    assert (found.isolation, found.timeout) == ("process", timedelta(seconds=30))
    assert type(outcome).__name__ == "Completed", outcome
    (said,) = log.of("info")
    assert said.startswith("who ")
    assert said.endswith("!")
    assert str(os.getpid()) not in said


def test_a_changed_file_runs_in_a_new_process(folder: Path) -> None:
    before = load_folder(folder)
    _, log = run(before.registry)
    (folder / "deep" / "who.py").write_text(SOURCE.replace("{suffix}", " changed"))
    after = before.reload()
    run(after.registry, log=log)

    first, second = log.of("info")
    assert second.endswith(" changed")
    assert first.split()[1].rstrip("!") != second.split()[1]


def test_a_task_of_an_application_is_found_whatever_it_is_called_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_of_isolation.py").write_text(
        "from gw_core import TaskRegistry\n"
        "def made():\n"
        "    registry = TaskRegistry()\n"
        "    @registry.task('who', isolation='process')\n"
        "    def inner(payload, context): context.logger.info(inner.__qualname__)\n"
        "    return registry\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    _, log = run(load_app("shop_of_isolation:made"))

    assert log.of("info") == ["made.<locals>.inner"]


def test_a_task_that_processes_cannot_find_is_rejected_at_the_start(site: QueueFixture) -> None:
    registry = TaskRegistry()

    @registry.task("hidden", isolation="process")
    def hidden(payload: Any) -> None: ...

    with pytest.raises(TaskLoadError, match="at the top of a module"):
        Runner(site.url, tasks=registry, handle_signals=False).start()


def test_another_isolation_is_rejected() -> None:
    with pytest.raises(TaskLoadError, match="'process' or None, not 'thread'"):
        task(isolation=cast(Any, "thread"))(theirs.returns)


PROGRAM = """
import os, sys
from gw_core import Runner, TaskRegistry
registry = TaskRegistry()
@registry.task('who', isolation='process')
def who(payload):
    print('in', os.getpid(), flush=True)
"""
WORKER = """
print('main', os.getpid(), flush=True)
print(Runner(sys.argv[-1], tasks=registry).run_once())
"""
GUARD = "if __name__ == '__main__':"


def test_an_isolated_task_is_interrupted_between_its_steps_and_continues(site: QueueFixture, tmp_path: Path) -> None:
    names = {name: str(tmp_path / name) for name in ("log", "waits", "goes on")}
    site.add("has_steps", names)
    tasks = isolated(theirs.has_steps)
    with site.running(tasks) as running:
        wait_until(Path(names["waits"]).exists, what="the second row")
        running.request_stop()
        running.end()
        assert [each.job.attempts for each in running.recorded.of(JobReturned)] == [1]
    Path(names["goes on"]).touch()

    assert site.run_once(tasks).completed == 1
    rows = [line.split() for line in Path(names["log"]).read_text().splitlines()]
    assert [row for row, _ in rows] == ["0", "1", "2"]
    assert len({number for _, number in rows}) == 1
    assert site.run("select * from _private_gw_steps") == []


def run_program(site: QueueFixture, *how: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *how, site.url],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        text=True,
        capture_output=True,
        timeout=DEADLINE,
    )


@pytest.mark.parametrize("how", ["program.py", "-m program"])
def test_tasks_of_the_program_itself_are_found(
    site: QueueFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(PROGRAM + GUARD + indent(WORKER, "    "))
    site.add("who")

    ran = run_program(site, *how.split())

    words = [line.split()[0] for line in ran.stdout.splitlines()]
    assert (words, site.jobs()) == (["main", "in", "RunResult(completed=1,"], []), ran


@pytest.mark.parametrize("how", ["program.py", "-m program"])
def test_a_program_without_a_guard_is_rejected_before_it_runs_again(
    site: QueueFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(PROGRAM + WORKER)
    job_id = site.add("who")

    ran = run_program(site, *how.split())

    assert ran.stdout.split()[0] == "main"
    assert len(ran.stdout.splitlines()) == 1, ran
    assert ran.stderr.splitlines()[-1].endswith(f"TaskLoadError: {process_pool.UNGUARDED}")
    assert site.job(job_id)["attempts"] == 0


def test_a_program_whose_guard_is_elsewhere_starts_no_worker_in_the_process_of_a_task(
    site: QueueFixture, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"{PROGRAM}{GUARD}\n    print('guarded')\n{WORKER}")
    job_id = site.add("who")

    ran = run_program(site, str(program))

    assert "failed=1" in ran.stdout.splitlines()[-1], ran
    assert site.job(job_id)["last_error"].startswith(f"TaskLoadError: {process_pool.UNGUARDED}")


# -- the context ------------------------------------------------------------------------------------------------------


def test_the_context_reaches_through_to_the_worker(site: QueueFixture) -> None:
    job_id = site.add("uses_the_context", queue_name="q")
    with site.running(isolated(theirs.uses_the_context)) as running:
        running.recorded.wait_for(JobCompleted)
        said = [message for level, message in running.log.messages if level in ("info", "warning")]

    assert any(f"job {job_id} of q in gw-worker-" in message for message in said)
    assert ("3 added, 4 there, [(7,)]" in said, "scoped" in said) == (True, True)
    later = [each.job for each in site.client.jobs.list("task:later", with_payload=True).jobs]
    assert sorted((job.payload["n"], job.job_key, job.flags, job.run_at - job.created_at) for job in later) == [
        (1, "key", (), timedelta(hours=1)),
        (2, None, ("slow",), timedelta(0)),
        (3, None, ("slow",), timedelta(0)),
    ]
    assert {job.expires_at and job.expires_at - job.created_at for job in later} == {None, timedelta(hours=2)}


def test_null_as_the_payload_of_an_optional_type_arrives_as_null(site: QueueFixture) -> None:
    site.add("adds_null")
    with site.running(isolated(theirs.adds_null)) as running:
        running.recorded.wait_for(JobCompleted)

    [later] = site.rows("select payload::text from _private_jobs")
    assert later == ("null",)


def test_plugins_are_asked_about_jobs_that_are_added_there(site: QueueFixture) -> None:
    class Strict(Plugin):
        def before_add(self, spec: Any) -> Any:
            return Reject("not today") if spec.task == "refused" else None

    site.add("adds_what_is_rejected")
    site.let_retries_wait()
    with site.running(isolated(theirs.adds_what_is_rejected), plugins=[Strict()]) as running:
        (errored,) = running.recorded.wait_for(JobErrored)

    assert str(errored.error) == "not today"
    assert type(errored.error).__name__ == JobRejectedError.__name__


def test_a_job_cannot_be_added_on_a_connection_of_another_process(site: QueueFixture) -> None:
    site.add("adds_in_a_transaction")
    site.let_retries_wait()
    with site.running(isolated(theirs.adds_in_a_transaction)) as running:
        (errored,) = running.recorded.wait_for(JobErrored)

    assert "leave conn out" in str(errored.error)


# -- stopping ---------------------------------------------------------------------------------------------------------


def waiting(log: LogRecorder, word: str) -> list[int]:
    """The numbers a task printed after the word, once it has."""
    found = wait_until(lambda: [text for text in log.of("info") if text.startswith(word)], deadline_seconds=DEADLINE)
    return [int(number) for number in found[0].split()[1:]]


def test_a_task_is_asked_to_stop_and_ends_as_it_likes(site: QueueFixture) -> None:
    job_id = site.add("waits_for_the_stop")
    with site.running(isolated(theirs.waits_for_the_stop), notify_tasks_after=ms(0)) as running:
        waiting(running.log, "waiting")
        running.stop()
        (returned,) = running.recorded.of(JobReturned)

    assert returned.reason == "stopped gracefully: shutdown"
    assert site.job(job_id)["attempts"] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_for_every_process_is_for_the_worker(site: QueueFixture, number: signal.Signals) -> None:
    job_id = site.add("waits_for_the_stop")
    with site.running(isolated(theirs.waits_for_the_stop), notify_tasks_after=ms(0)) as running:
        waiting(running.log, "waiting")
        for leader in leaders():
            os.kill(leader.pid, number)
        running.stop()
        (returned,) = running.recorded.of(JobReturned)

    assert returned.reason == "stopped gracefully: shutdown"
    assert site.job(job_id)["attempts"] == 0


def test_a_hogging_task_is_killed_with_its_group_when_its_time_is_over(site: QueueFixture) -> None:
    job_id = site.add("never_ends")
    site.let_retries_wait()
    registry = isolated(theirs.never_ends, timeout=600)
    registry.register("returns", theirs.returns)
    with site.running(registry, concurrency=1) as running:
        pids = waiting(running.log, "hogging")
        (run,) = running.pool.timeouts.runs.values()
        run.next_step = 0.0  # not after ten minutes, and not before its output has arrived
        running.pool.timeouts.wake()
        running.recorded.wait_for(JobErrored)
        # Its thread is free again for the next job, for nothing of it is left.
        site.add("returns")
        running.recorded.wait_for(JobCompleted, lambda event: event.job.task == "returns")

        wait_until(lambda: "timeout of 10m" in (site.job(job_id)["last_error"] or ""))
        wait_until(lambda: not any(map(is_alive, pids)))


def test_a_hogging_task_is_killed_when_its_job_is_cancelled(
    site: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "FORCE_AFTER", 0.1)
    job_id = site.add("never_ends", queue_name="q")
    with site.running(isolated(theirs.never_ends)) as running:
        pids = waiting(running.log, "hogging")
        (answer,) = site.client.jobs.cancel([job_id], by="the test", timeout=timedelta(seconds=DEADLINE))

        assert (answer.result, site.job(job_id)["last_error"]) == ("cancelled", "cancelled by the test")
        wait_until(lambda: not any(map(is_alive, pids)))
    assert site.held() == []


@pytest.mark.parametrize("retry", [False, True])
def test_a_cancelled_task_sees_whether_its_job_keeps_its_attempts(site: QueueFixture, retry: bool) -> None:
    job_id = site.add("logs_whether_attempts_remain")
    site.let_retries_wait()
    with site.running(isolated(theirs.logs_whether_attempts_remain)) as running:
        waiting(running.log, "waiting")
        site.client.jobs.cancel([job_id], retry=retry, by="the test", timeout=timedelta(seconds=DEADLINE))
        assert waiting(running.log, "remain") == [retry]


def test_a_task_that_sends_half_a_message_is_killed_too(site: QueueFixture) -> None:
    site.add("sends_half_a_message")
    with site.running(isolated(theirs.sends_half_a_message)) as running:
        pids = waiting(running.log, "hogging")
        running.request_stop()
        running.runner.force()
        running.end(within=30)
        wait_until(lambda: not any(map(is_alive, pids)))


def test_a_stop_that_is_forced_leaves_no_process(site: QueueFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gw_core.worker.pool.MIN_SETTLE_TIMEOUT", timedelta(seconds=DEADLINE))  # on a busy server
    job_id = site.add("never_ends")
    with site.running(isolated(theirs.never_ends)) as running:
        pids = waiting(running.log, "hogging")
        running.request_stop()
        running.runner.force()
        running.end(within=30)
        wait_until(lambda: not any(map(is_alive, pids)))
    job = site.job(job_id)
    assert (job["attempts"], job["last_error"], site.held()) == (0, None, [])


def test_a_task_that_hogs_its_interpreter_does_not_stop_the_heartbeat(site: QueueFixture) -> None:
    def last_heartbeat() -> Any:
        return site.run("select last_heartbeat_at as at from _private_gw_workers")[0]["at"]

    site.add("never_ends")
    with site.running(isolated(theirs.never_ends), heartbeat_interval=ms(20)) as running:
        waiting(running.log, "hogging")
        for _ in range(3):
            before = last_heartbeat()
            wait_until(lambda before=before: last_heartbeat() > before)  # type: ignore[misc]
        running.runner.stop()
        running.runner.force()


def test_a_worker_that_ends_leaves_no_idle_process(site: QueueFixture) -> None:
    site.add("says_who")
    with site.running(isolated(theirs.says_who)) as running:
        running.recorded.wait_for(JobCompleted)
        pid = next(int(text) for text in running.log.of("info") if text.isdecimal())
        assert is_alive(pid)

    wait_until(lambda: not is_alive(pid))


@pytest.mark.parametrize("function", ["waits_for_the_stop", "never_ends"])
def test_processes_end_with_a_worker_that_is_killed(site: QueueFixture, function: str, tmp_path: Path) -> None:
    program = (
        "import sys, isolated_tasks, gw_core\n"
        "registry = gw_core.TaskRegistry()\n"
        f"registry.task('work', isolation='process')(isolated_tasks.{function})\n"
        "import logging; logging.basicConfig(stream=sys.stdout, level='INFO', format='%(message)s')\n"
        "gw_core.run(sys.argv[1], tasks=registry)\n"
    )
    site.add("work")
    worker = subprocess.Popen(
        [sys.executable, "-c", program, site.url],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(Path(__file__).parent)])},
        text=True,
        stdout=subprocess.PIPE,
    )
    try:
        assert worker.stdout is not None
        said = next(line for line in worker.stdout if line.startswith(("waiting", "hogging")))
    finally:
        worker.kill()
        worker.wait(DEADLINE)
        worker.stdout.close()
    pids = [int(pid) for pid in said.split()[1:]]

    wait_until(lambda: not any(map(is_alive, pids)), what="the process, and what it has started, to end")
