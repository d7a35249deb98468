"""Programs as tasks: their input, what becomes of their output, and how they end."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import signal
import tracemalloc
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.task_builders import (
    LoadedTask,
    LogRecorder,
    a_context,
    a_job,
    attempt,
    in_thread,
    run_python,
    write,
    write_program,
)
from support.waiting import wait_until

from gw_core import Job, JobContext, Snooze
from gw_core.execution import executables
from gw_core.front_ends import Completed, ExecutableError, Failed, Outcome, Returned


def run_program(path: Path, job: Job | None = None, log: LogRecorder | None = None, **options: Any) -> Outcome:
    job = job or a_job()
    return attempt(LoadedTask("mail", executables.compose_executable(path, **options), str(path)), job, log=log)


def shell(folder: Path, script: str) -> Path:
    return write_program(folder / "task.sh", f"#!/bin/sh\n{script}\n")


# -- its input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epoch", "reported"),
    [
        (float("-inf"), "0001-01-01T00:00:00.000Z"),
        (-100_000_000_000.0, "0001-01-01T00:00:00.000Z"),
        (float("inf"), "9999-12-31T23:59:59.999Z"),
    ],
    ids=["-infinity", "before Christ", "infinity"],
)
def test_a_run_at_beyond_the_calendar_is_reported_as_its_end(tmp_path: Path, epoch: float, reported: str) -> None:
    log = LogRecorder()
    program = shell(tmp_path, "echo $GRAPHILE_WORKER_JOB_RUN_AT")

    assert isinstance(run_program(program, a_job(_run_at=epoch), log), Completed)
    assert log.of("info") == [reported]


def test_the_payload_stands_on_stdin_as_json(tmp_path: Path) -> None:
    log = LogRecorder()
    program = shell(tmp_path, "cat")

    assert isinstance(run_program(program, a_job(text='{"to": "Bobby \\u00e9\U0001f600"}'), log), Completed)

    (line,) = log.of("info")
    assert line == '{"payload":{"to": "Bobby \\u00e9\U0001f600"}}'
    assert json.loads(line) == {"payload": {"to": "Bobby \u00e9\U0001f600"}}


def test_the_environment_describes_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogRecorder()
    monkeypatch.setenv("COLOUR", "red")
    program = shell(tmp_path, "env | grep -E '^(GRAPHILE_WORKER_|COLOUR)' | sort")

    run_program(program, a_job(id=7, task="a b", job_key="k=1", attempts=2, max_attempts=5, priority=-3), log)

    assert log.of("info") == [
        "GRAPHILE_WORKER_JOB_ATTEMPTS=2",
        "GRAPHILE_WORKER_JOB_ID=7",
        "GRAPHILE_WORKER_JOB_KEY=k=1",
        "GRAPHILE_WORKER_JOB_MAX_ATTEMPTS=5",
        "GRAPHILE_WORKER_JOB_PRIORITY=-3",
        "GRAPHILE_WORKER_JOB_RUN_AT=2023-11-14T22:13:20.250Z",
        "GRAPHILE_WORKER_PAYLOAD_FORMAT=json",
        "GRAPHILE_WORKER_TASK_IDENTIFIER=a b",
    ]


def test_a_job_without_a_key_has_no_variable_for_it_not_even_an_inherited_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHILE_WORKER_JOB_KEY", "that of another job")
    log = LogRecorder()

    run_program(shell(tmp_path, 'echo "key ${GRAPHILE_WORKER_JOB_KEY-absent}"'), log=log, handed_on=None)

    assert log.of("info") == ["key absent"]


def test_the_program_runs_in_the_current_folder_and_without_a_shell_or_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = LogRecorder()
    program = write_program(tmp_path / "tasks dir" / "$(touch oops); x", '#!/bin/sh\npwd; echo "$#"\n')

    assert isinstance(run_program(program, log=log), Completed)
    assert log.of("info") == [os.path.realpath(tmp_path), "0"]
    assert not (tmp_path / "oops").exists()


def test_a_relative_path_is_found_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell(tmp_path, "true")
    monkeypatch.chdir(tmp_path)

    assert isinstance(run_program(Path("task.sh")), Completed)


@pytest.mark.parametrize("script", ["exit 0", "exec <&-; exit 0", "head -c 1 >/dev/null"])
def test_a_program_need_not_read_its_stdin(tmp_path: Path, script: str) -> None:
    assert isinstance(run_program(shell(tmp_path, script), a_job("x" * 1_000_000)), Completed)


def test_a_large_payload_and_a_large_answer_do_not_block_each_other(tmp_path: Path) -> None:
    log = LogRecorder()

    assert isinstance(run_program(shell(tmp_path, "cat"), a_job(["x" * 99] * 20_000), log), Completed)
    assert sum(map(len, log.of("info"))) > 2_000_000


def test_a_program_in_another_language_is_a_task_too(tmp_path: Path) -> None:
    log = LogRecorder()
    perl = shutil.which("perl")
    assert perl, "perl is part of every Debian and macOS"
    program = write_program(tmp_path / "task.pl", f'#!{perl}\nprint "read ", length(<STDIN>), "\\n";\n')

    assert isinstance(run_program(program, log=log), Completed)
    assert log.of("info") == ["read 14"]


# -- its output -------------------------------------------------------------------------------------------------------


def test_output_is_logged_line_by_line(tmp_path: Path) -> None:
    log = LogRecorder()

    run_program(shell(tmp_path, r"printf 'one\n\ntwo\r\nthree'; printf 'oops\n' >&2"), log=log)

    assert log.of("info") == ["one", "two", "three"]
    assert log.of("error") == ["oops"]


def test_a_line_is_logged_while_the_program_still_runs(tmp_path: Path) -> None:
    log, go_on = LogRecorder(), tmp_path / "go"
    program = shell(tmp_path, f"echo ready; while [ ! -e '{go_on}' ]; do sleep 0.01; done")

    outcome = in_thread(lambda: run_program(program, log=log))
    log.wait_for("ready")
    go_on.touch()

    assert isinstance(outcome(), Completed)


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    log = LogRecorder()

    run_program(shell(tmp_path, r"printf '\377\376\n'"), log=log)

    assert log.of("info") == ["\ufffd\ufffd"]


def test_endless_lines_do_not_grow_the_memory(tmp_path: Path) -> None:
    lengths: list[int] = []

    class Lengths(LogRecorder):
        def emit(self, record: logging.LogRecord) -> None:
            lengths.append(len(record.getMessage()))

    program = shell(tmp_path, "head -c 30000000 /dev/zero | tr '\\0' x")
    tracemalloc.start()
    try:
        assert isinstance(run_program(program, log=Lengths()), Completed)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert sum(lengths) == 30_000_000
    assert max(lengths) <= executables.MAX_LINE_LENGTH
    assert peak < 5_000_000


# -- how it ends ------------------------------------------------------------------------------------------------------


def failed(outcome: Outcome) -> Failed:
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, ExecutableError)
    return outcome


def test_the_exit_code_and_the_last_lines_of_stderr_are_the_error(tmp_path: Path) -> None:
    program = shell(tmp_path, "echo fine; for i in $(seq 1 50); do echo line $i >&2; done; exit 3")

    message = failed(run_program(program)).message

    assert "task.sh ended with exit code 3: " in message
    assert message.endswith("line 49\nline 50")
    assert "line 30\n" not in message
    assert "fine" not in message


def test_a_failure_without_a_message_says_so(tmp_path: Path) -> None:
    message = failed(run_program(shell(tmp_path, "exit 1"))).message

    assert message.endswith("ended with exit code 1 with nothing on stderr")


def test_a_program_ended_by_a_signal_names_it(tmp_path: Path) -> None:
    assert "was ended by SIGKILL" in failed(run_program(shell(tmp_path, "kill -9 $$"))).message


def test_the_error_is_bounded_however_much_stderr_there_was(tmp_path: Path) -> None:
    message = failed(run_program(shell(tmp_path, "head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 1"))).message

    assert len(message) < 5_000


def test_something_left_in_the_background_does_not_hold_up_the_job(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    program = shell(tmp_path, f"sleep 600 & echo $! > '{pid_file}'; echo done")
    log = LogRecorder()

    try:
        assert isinstance(run_program(program, log=log), Completed)
        assert log.of("info") == ["done"]
    finally:
        os.kill(int(pid_file.read_text()), signal.SIGKILL)


def test_something_left_in_the_background_that_keeps_talking_does_not_hold_up_the_job_for_long(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    program = shell(tmp_path, f"(while :; do echo more; sleep 0.01; done) & echo $! > '{pid_file}'; exit 5")
    seconds = iter(range(10_000))

    try:
        with pytest.raises(ExecutableError, match="exit code 5"):
            executables.run_executable(program, a_job(), a_context(), clock=lambda: float(next(seconds)))
    finally:
        with contextlib.suppress(ProcessLookupError):  # a broken pipe may have ended it
            os.kill(int(pid_file.read_text()), signal.SIGKILL)


def test_what_a_program_prints_between_the_last_read_of_its_pipes_and_its_end_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, go_on, checks = LogRecorder(), tmp_path / "go", count()
    program = shell(tmp_path, f"echo ready; while [ ! -e '{go_on}' ]; do sleep 0.01; done; echo last words")
    exit_code = executables.Program.exit_code

    def exit_code_after_the_end(self: Any) -> int | None:
        # At the second look after it spoke its pipes were found empty; now let it speak and end.
        if "ready" in log.of("info") and next(checks) == 1:
            go_on.touch()
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        return exit_code(self)

    monkeypatch.setattr(executables.Program, "exit_code", exit_code_after_the_end)

    assert isinstance(run_program(program, log=log), Completed)
    assert log.of("info") == ["ready", "last words"]


def test_a_program_that_closes_its_output_is_waited_for(tmp_path: Path) -> None:
    marker = tmp_path / "done"
    program = shell(tmp_path, f"exec >&- 2>&- <&-; sleep 0.05; : > '{marker}'; exit 4")

    assert "exit code 4" in failed(run_program(program)).message
    assert marker.exists()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        pytest.param(lambda p: write(p, "#!/bin/sh\n"), "is not executable for this user; run: chmod +x", id="no x"),
        pytest.param(lambda p: write_program(p, "#!/no/sh\n"), "an interpreter that does not exist", id="interpreter"),
        pytest.param(lambda p: write_program(p, "echo hello\n"), "needs a #! line", id="no #! line"),
        pytest.param(lambda p: p, "no longer exists", id="gone"),
    ],
)
def test_a_program_that_cannot_be_started_says_why(tmp_path: Path, make: Any, sentence: str) -> None:
    path = tmp_path / "task"
    make(path)

    assert sentence in failed(run_program(path)).message


# -- being stopped ----------------------------------------------------------------------------------------------------


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def ending(program: Path, context: JobContext, **options: Any) -> Any:
    def run() -> object:
        try:
            executables.run_executable(program, context.job, context, **options)
        except BaseException as error:
            return error
        return None

    return in_thread(run)


def test_a_program_is_asked_to_stop_and_what_it_did_counts_when_it_succeeds(tmp_path: Path) -> None:
    log = LogRecorder()
    context = a_context(log=log)
    program = shell(tmp_path, "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.01; done")

    ended = ending(program, context, timeout=timedelta(hours=1))
    log.wait_for("ready")
    context.should_stop.set()

    assert ended() is None
    assert "saved" in log.of("info")


def test_a_program_that_ends_by_the_request_to_stop_is_returned(tmp_path: Path) -> None:
    log, job = LogRecorder(), a_job()
    context = a_context(job, log)
    program = shell(tmp_path, "echo ready; sleep 600")

    outcome = in_thread(
        lambda: attempt(LoadedTask("mail", executables.compose_executable(program), "here"), context=context)
    )
    log.wait_for("ready")
    context.should_stop.set()

    returned = outcome()
    assert isinstance(returned, Returned)
    assert returned.delay > timedelta(0)


def test_a_program_that_will_not_stop_is_killed_with_all_it_started(tmp_path: Path) -> None:
    log, pid_file = LogRecorder(), tmp_path / "pids"
    context = a_context(log=log)
    program = shell(
        tmp_path,
        f"trap '' TERM; (while :; do sleep 0.02; done) & echo $$ $! > '{pid_file}'; echo ready; "
        "while :; do sleep 0.02; done",
    )

    ended = ending(program, context, timeout=timedelta(milliseconds=50))
    log.wait_for("ready")
    context.should_stop.set()

    assert isinstance(ended(), Snooze)
    for pid in map(int, pid_file.read_text().split()):
        wait_until(partial(gone, pid), what=f"process {pid} to be gone")


def test_what_a_stopped_program_left_running_is_killed(tmp_path: Path) -> None:
    log, pid_file = LogRecorder(), tmp_path / "pid"
    context = a_context(log=log)
    program = shell(
        tmp_path,
        f"(trap '' TERM; exec >&- 2>&-; while :; do sleep 0.02; done) & echo $! > '{pid_file}'; "
        "trap 'exit 1' TERM; echo ready; while :; do sleep 0.02; done",
    )

    ended = ending(program, context)
    log.wait_for("ready")
    context.should_stop.set()

    assert isinstance(ended(), Snooze)
    wait_until(partial(gone, int(pid_file.read_text())), what="the process left behind to be gone")


def test_a_job_that_is_returned_has_its_program_killed_immediately(tmp_path: Path) -> None:
    log = LogRecorder()
    context = a_context(log=log)
    program = shell(tmp_path, "trap '' TERM; echo ready; while :; do sleep 0.02; done")

    ended = ending(program, context, timeout=timedelta(hours=1))
    log.wait_for("ready")
    context.should_stop.forced = True

    assert isinstance(ended(), Snooze)


def test_the_programs_of_returned_jobs_can_be_killed_immediately_and_no_others(tmp_path: Path) -> None:
    logs, go_on = [LogRecorder(), LogRecorder()], tmp_path / "go"
    program = shell(tmp_path, f"trap '' TERM; echo ready; while [ ! -e '{go_on}' ]; do sleep 0.02; done")
    contexts = [a_context(log=log) for log in logs]
    theirs, ours = [ending(program, context) for context in contexts]
    for log in logs:
        log.wait_for("ready")

    contexts[0].should_stop.force()

    assert isinstance(theirs(), Snooze)
    go_on.touch()
    assert ours() is None


def test_no_program_outlives_a_process_that_ends(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    program = shell(tmp_path, f"trap '' TERM; echo $$ > '{pid_file}'; echo ready; while :; do sleep 0.02; done")
    script = f"""
import contextlib
import threading
from pathlib import Path
from gw_core.execution.executables import run_executable
from support.task_builders import LogRecorder, a_context, a_job

log = LogRecorder()

def run():
    # As in a worker's thread, the killed program's error is not printed while the interpreter shuts down.
    with contextlib.suppress(Exception):
        run_executable(Path({str(program)!r}), a_job(), a_context(log=log))

threading.Thread(target=run, daemon=True).start()
log.wait_for("ready")
"""
    ended = run_python(script)

    assert ended.returncode == 0, ended.stderr
    wait_until(partial(gone, int(pid_file.read_text())), what="the program to be gone")


def test_a_logger_that_breaks_leaves_no_program_behind(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    class Broken(LogRecorder):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("disk full")

    program = shell(tmp_path, f"echo $$ > '{pid_file}'; echo hello; sleep 600")

    outcome = run_program(program, log=Broken())

    assert isinstance(outcome, Failed)
    assert outcome.message.startswith("OSError: disk full (")
    assert gone(int(pid_file.read_text()))


def test_no_file_descriptors_are_left_open(tmp_path: Path) -> None:
    program = shell(tmp_path, "echo hello")
    run_program(program)
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(5):
        run_program(program)

    # Threads of earlier tests may open or close one.
    assert len(os.listdir("/proc/self/fd")) < before + 5
