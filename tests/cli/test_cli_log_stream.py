"""The log of a worker whose reader stops reading."""

from __future__ import annotations

import io
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from support.shell import PROGRAM

from gw_cli import log_output
from gw_cli.log_stream import LogStream

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
