"""The log of `gw run`: text and JSON, records of gw and of the application."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, strategies as st
from support.shell import PROGRAM
from support.task_builders import a_job

from gw_cli import log_output
from gw_cli.log_stream import LogStream
from gw_core.front_ends import UNSAFE_TEXT, JobLogger, job_fields

_NUMBERS = count()


class CountingStream(BytesIO):
    """A stderr that counts writes."""

    writes = 0

    def write(self, data: Any) -> int:
        self.writes += 1
        return super().write(data)


class Log:
    """A logger with the handler of `gw run`, and the text that it wrote."""

    def __init__(self, log_format: str = "text", stream: Any = None, **options: Any) -> None:
        self.stream = stream or CountingStream()
        self.handler = log_output.log_handler(log_output.log_stream(self.stream), log_format=log_format, **options)
        self.logger = logging.Logger(f"app{next(_NUMBERS)}")
        self.logger.addHandler(self.handler)

    def named(self, name: str) -> logging.Logger:
        self.logger.name = name
        return self.logger

    @property
    def text(self) -> str:
        return str(self.stream.getvalue().decode())

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


def a_raised_error() -> ValueError:
    # Compiled under the name of a user's file, because the frames of the test's own tools would show as well.
    code = compile("def work():\n    raise ValueError('no\\x1bgood')\nwork()", "/srv/app/tasks/mail.py", "exec")
    try:
        exec(code, {"__name__": "mail"})  # noqa: S102
    except ValueError as error:
        return error
    raise AssertionError


def chained() -> RuntimeError:
    try:
        raise RuntimeError("cannot import invoice") from a_raised_error()
    except RuntimeError as error:
        return error


# -- text --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("graphile_worker", "[core] INFO: hi 7\n"),
        ("graphile_worker.worker", "[worker] INFO: hi 7\n"),
        ("shop.mail", "[shop.mail] INFO: hi 7\n"),
        ("a\x1b]", "[a\\x1b]] INFO: hi 7\n"),
    ],
)
def test_a_line_names_its_logger(name: str, line: str) -> None:
    log = Log()

    log.named(name).info("hi %s", 7)

    assert log.text == line


def test_a_line_of_a_job_names_thread_task_and_job() -> None:
    log = Log(process=2)

    JobLogger(log.named("graphile_worker.job"), job_fields(a_job(id=7))).info("receipt for order %s", 12)

    assert log.text == "[job#2(MainThread: mail{7})] INFO: receipt for order 12\n"


def test_a_line_starts_with_the_time_when_asked() -> None:
    log = Log(times=True)

    log.logger.warning("hi")

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \[app\d+\] WARNING: hi\n", log.text)


@pytest.mark.parametrize("message", ["a\nb", "a\x1b[2J", "a\u202eb"])
def test_a_message_cannot_pose_as_another_line(message: str) -> None:
    log = Log()

    log.named("graphile_worker.core").info(message)

    assert not re.search(UNSAFE_TEXT, log.text.replace("\n", ""))
    assert all(line.startswith(("[core] INFO: ", "    ")) for line in log.text.splitlines())


def test_an_error_shows_frames_of_the_application_innermost_first() -> None:
    log = Log()

    log.logger.error("Failed", exc_info=a_raised_error())

    _, title, *places = log.text.splitlines()
    assert title == "    ValueError: no\\x1bgood"
    assert places[:2] == [
        "    at /srv/app/tasks/mail.py:2 in work",
        "    at /srv/app/tasks/mail.py:3 in <module>",
    ]


def test_a_defect_of_gw_shows_where_it_was_raised() -> None:
    log, code = Log(), compile("def step():\n    [][0]\nstep()", "/opt/gw_core/worker/settler.py", "exec")
    try:
        exec(code, {"__name__": "gw_core.worker.settler"})  # noqa: S102
    except IndexError as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # the frame of the test
        log.logger.error("Failed", exc_info=error)

    assert "    at /opt/gw_core/worker/settler.py:2 in step" in log.text.splitlines()


@pytest.mark.usefixtures("deleted_folder")
def test_an_error_is_logged_after_the_current_folder_was_deleted() -> None:
    log = Log()

    log.logger.error("Failed", exc_info=a_raised_error())

    assert "    at /srv/app/tasks/mail.py:2 in work" in log.text.splitlines()


def test_an_error_shows_its_cause_and_the_members_of_a_group() -> None:
    log = Log()

    log.logger.error("Failed", exc_info=ExceptionGroup("many", [chained(), KeyError("b")]))

    for line in (
        "    ExceptionGroup: many (2 sub-exceptions)",
        "    member RuntimeError: cannot import invoice",
        "        caused by ValueError: no\\x1bgood",
        "            at /srv/app/tasks/mail.py:2 in work",
        "    member KeyError: 'b'",
    ):
        assert line in log.text.splitlines()


def test_a_circle_of_causes_ends() -> None:
    log, one, other = Log(), ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one

    log.logger.error("Failed", exc_info=one)

    assert log.text.count("caused by") == log_output.MAX_CHAIN


def test_deep_errors_show_the_innermost_frames_only() -> None:
    def dig(depth: int) -> None:
        if depth == 0:
            raise ValueError
        dig(depth - 1)

    with pytest.raises(ValueError) as raised:
        dig(50)

    assert len(log_output.frames_of(raised.value)) == log_output.MAX_FRAMES


def test_levels_are_coloured_when_asked() -> None:
    log = Log(colour=True)

    log.named("graphile_worker").error("x")

    assert log.text == "[core] \x1b[31mERROR\x1b[0m: x\n"


def test_arguments_that_do_not_fit_lose_no_line() -> None:
    log = Log()

    log.named("graphile_worker").info("%d jobs", "many")

    assert log.text == "[core] INFO: '%d jobs' (its arguments do not fit: TypeError)\n"


# -- JSON --------------------------------------------------------------------------------------------------------------


def test_a_json_line_has_the_fields_of_a_job_and_of_the_call() -> None:
    log = Log("json", process=2)

    logger = JobLogger(log.named("graphile_worker.job"), job_fields(a_job(id=7, queue_name="q"), "gw-1"))
    logger.info("a\nb\x7f", extra={"order": 12})

    (entry,) = log.entries
    assert entry.pop("ts").endswith("Z")
    assert not re.search(UNSAFE_TEXT, log.text[:-1])
    assert entry == {
        "level": "info",
        "message": "a\nb\x7f",
        "label": "job",
        "logger": "graphile_worker.job",
        "thread": "MainThread",
        "process": 2,
        "job_id": 7,
        "task": "mail",
        "queue_name": "q",
        "attempt": 1,
        "max_attempts": 25,
        "worker_id": "gw-1",
        "order": 12,
    }


def test_a_json_line_nests_causes_and_members() -> None:
    log = Log("json")

    log.logger.error("failed", exc_info=ExceptionGroup("many", [chained(), KeyError("b")]), extra={"level": "spoofed"})

    (entry,) = log.entries
    first, second = entry["error"]["exceptions"]
    assert (entry["level"], entry["error"]["type"], second["type"]) == ("error", "ExceptionGroup", "KeyError")
    assert first["cause"]["message"] == "no\x1bgood"
    assert first["cause"]["frames"][0] == "/srv/app/tasks/mail.py:2 in work"


def test_values_without_text_lose_no_line() -> None:
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    log = Log("json")
    log.logger.info("on", exc_info=BrokenError(), extra={"thing": BrokenError()})

    (entry,) = log.entries
    assert (entry["message"], entry["error"]["type"], entry["thing"]) == ("on", "BrokenError", "(BrokenError)")


@given(st.text(st.characters(), min_size=1))
def test_json_escapes_everything_and_loses_nothing(task: str) -> None:
    log = Log("json")

    log.logger.info("Completed %s", task, extra={"task": task})

    (line,) = log.text.split("\n")[:-1]
    assert json.loads(line)["task"] == task
    assert not re.search(UNSAFE_TEXT, line)


# -- where it goes -----------------------------------------------------------------------------------------------------


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, which is as before after the test."""
    root, asyncio = logging.getLogger(), logging.getLogger("asyncio")
    before = root.handlers[:], root.level, asyncio.level
    yield root
    root.handlers[:], root.level, asyncio.level = before
    logging.captureWarnings(False)


def test_records_of_every_logger_that_reach_the_level_are_written(root: logging.Logger) -> None:
    stream = BytesIO()
    root.handlers.clear()

    log_output.configure_logging(
        level="warning", log_format="text", log_time="never", stream=log_output.log_stream(stream), colour=False
    )
    for level in (logging.INFO, logging.WARNING):
        logging.getLogger("graphile_worker.core").log(level, "ours")
        logging.getLogger("shop.orders").log(level, "theirs")

    assert stream.getvalue() == b"[core] WARNING: ours\n[shop.orders] WARNING: theirs\n"


def test_a_log_that_nothing_reads_harms_nothing() -> None:
    class Gone(CountingStream):
        def write(self, data: Any) -> int:
            super().write(data)
            raise BrokenPipeError

    log = Log(stream=Gone())

    log.logger.info("one")
    log.logger.info("two")

    assert log.stream.writes == 1


def test_a_slow_reader_gets_every_byte() -> None:
    class Slow(CountingStream):
        def write(self, data: Any) -> int:
            return super().write(data[:7])

    log = Log(stream=Slow())

    log.named("graphile_worker").info("a message longer than one write takes")

    assert log.text == "[core] INFO: a message longer than one write takes\n"


def test_a_signal_handler_can_log_during_a_write() -> None:
    class Interrupted(CountingStream):
        def write(self, data: Any) -> int:
            if self.writes == 0:
                self.writes += 1
                log.logger.info("received a signal")
            return super().write(data)

    log = Log(stream=Interrupted())

    log.named("graphile_worker").info("at work")

    assert log.text == "[core] INFO: received a signal\n[core] INFO: at work\n"


def test_half_a_character_does_not_stop_the_log() -> None:
    log = Log()

    log.named("x\udfff").info("a\ud800")

    assert log.text == "[x\\udfff] INFO: a\\ud800\n"


@pytest.mark.parametrize(
    ("is_terminal", "is_journal", "choice", "adds"),
    [
        (False, False, "auto", True),
        (True, False, "auto", False),
        (False, True, "auto", False),
        (True, True, "always", True),
        (False, False, "never", False),
    ],
)
def test_times_are_added_unless_the_reader_adds_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, is_terminal: bool, is_journal: bool, choice: str, adds: bool
) -> None:
    with (tmp_path / "stderr").open("w") as stderr:
        status = (tmp_path / "stderr").stat()
        fake = _Stderr(stderr.fileno(), is_terminal)
        monkeypatch.setattr(log_output.sys, "stderr", fake)
        monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino}" if is_journal else "1:2")

        assert log_output.adds_times(choice) is adds


class _Stderr:
    def __init__(self, number: int, is_terminal: bool) -> None:
        self._number = number
        self._is_terminal = is_terminal

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return self._is_terminal


# -- a reader that stops reading --------------------------------------------------------------------------------------

DEADLINE = 120


class Pipe:
    """A pipe, the log that is written into it, and a reader who reads when the test asks for it."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe()
        self._raw = os.fdopen(writer, "wb", buffering=0)
        self.stream = LogStream(self._raw, timeout=0.05)

    def write(self, *lines: str) -> None:
        """Write in a thread, so that a log which waits for its reader fails the test."""
        thread = threading.Thread(target=lambda: [self.stream.write(f"{line}\n") for line in lines], daemon=True)
        thread.start()
        thread.join(DEADLINE)
        assert not thread.is_alive(), "the log waited for its reader"

    def take(self, least: int) -> str:
        taken = b""
        while len(taken) < least:
            taken += os.read(self._reader, 1 << 20)
        return taken.decode()

    def close(self) -> None:
        self._raw.close()
        os.close(self._reader)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


def test_what_is_read_is_passed_on_whole(pipe: Pipe) -> None:
    lines = [f"{number} " + "x" * (number % 9000) for number in range(0, 40_000, 7919)]

    pipe.write(*lines)

    assert pipe.take(sum(map(len, lines)) + len(lines)).splitlines() == lines


def test_a_stopped_reader_blocks_no_worker_and_dropped_lines_are_counted(pipe: Pipe) -> None:
    written = [f"line {number} {'x' * 900}" for number in range(1000)]
    pipe.write(*written)
    before = pipe.take(1)

    pipe.write("after")
    after = pipe.take(len("after"))

    seen = (before + after).splitlines()
    reported = [line for line in seen if line not in written]
    kept = len(seen) - len(reported)
    assert 0 < kept < 1000
    assert seen[:kept] == written[:kept]
    assert reported == [f"{1000 - kept} lines of this log were lost: the reader did not keep up", "after"]


def test_a_line_that_was_begun_is_finished_before_any_other(pipe: Pipe) -> None:
    long = "y" * 1_000_000
    pipe.write(long)
    before = pipe.take(1)
    reading = threading.Thread(target=lambda: parts.append(pipe.take(len(long) + 7 - len(before))), daemon=True)
    parts: list[str] = []
    reading.start()
    pipe.stream._timeout = DEADLINE
    pipe.write("after")
    reading.join(DEADLINE)

    assert (before + parts[0]).splitlines() == [long, "after"]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_dropped_lines_are_reported_in_the_format_of_the_log(log_format: str) -> None:
    stream = log_output.log_stream(io.BytesIO())  # type: ignore[arg-type]
    log_output.log_handler(stream, log_format=log_format)

    line = stream.say_lost(3)

    assert line.count("\n") == 1
    message = json.loads(line)["message"] if log_format == "json" else line
    assert message.rstrip().endswith("because nothing read them: 3")


@pytest.mark.once
def test_a_worker_whose_log_is_not_read_does_its_jobs(tmp_path: Path, database_url: str) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "work.py").write_text("def work(payload):\n    pass\n")
    with psycopg.connect(database_url, autocommit=True) as hands:
        hands.execute(
            "select count(*) from graphile_worker.add_jobs(array(select"
            " ('work', '{}', null, null, null, null, null, null)::graphile_worker.job_spec"
            " from generate_series(1, 3000)))"
        )
        command = [PROGRAM, "run", "--once", "--connection", database_url]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as worker:
            try:
                assert worker.wait(DEADLINE) == 0
            finally:
                worker.kill()
        assert hands.execute("select count(*) from graphile_worker.jobs").fetchone() == (0,)
