"""`gw add --from`: jobs from JSON lines and CSV."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from support.cli_program import CliProgram
from support.jobs_in_states import Queue

from gw_cli import import_jobs
from gw_core import JobKeyMode, JobSpec

EVERYTHING = (
    '{"task": "mail", "payload": {"n": 1.50, "big": 12345678901234567890}, "queue_name": "q", '
    '"run_at": "2040-01-31T08:00:00+02:00", "max_attempts": 3, "job_key": "k", "priority": -5, "flags": ["a", "b"]}\n'
)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_jobs, "BATCH", 2)


def numbers(queue: Queue) -> list[int]:
    return [
        row[0] for row in queue.rows("select (payload ->> 'n')::int from graphile_worker._private_jobs order by id")
    ]


def lines(*values: object) -> bytes:
    return "".join(
        each if isinstance(each, str) else json.dumps({"task": "mail", "payload": {"n": each}}) + "\n"
        for each in values
    ).encode()


def test_a_line_says_everything_a_job_may_have(gw: CliProgram, queue: Queue) -> None:
    ended = gw("add", "--from", "-", "--json", stdin=EVERYTHING.encode())

    assert (ended.code, ended.json) == (0, {"added": 1, "skipped": 0, "last_line": 1})
    assert queue.rows(
        """
        select task_identifier, queue_name, run_at = '2040-01-31T06:00:00Z', max_attempts, key, priority, flags
        from graphile_worker.jobs
        """
    ) == [("mail", "q", True, 3, "k", -5, {"a": True, "b": True})]
    assert queue.value("select payload::text from graphile_worker._private_jobs") == (
        '{"n": 1.50, "big": 12345678901234567890}'
    )


def test_csv_says_the_same(gw: CliProgram, queue: Queue, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "task,payload,queue_name,priority,flags,max_attempts\r\n"
        'mail,"{""n"": 1.50,\n ""m"": 2}",q,-5,"a,b",\r\n'
        "other,,,,,7\r\n"
    )

    assert gw("add", "--from", "jobs.csv").code == 0
    assert queue.rows(
        "select task_identifier, queue_name, priority, flags, max_attempts from graphile_worker.jobs order by id"
    ) == [("mail", "q", -5, {"a": True, "b": True}, 25), ("other", None, 0, None, 7)]
    assert queue.value("select payload::text from graphile_worker._private_jobs limit 1") == '{"n": 1.50,\n "m": 2}'


def test_what_lines_leave_out_comes_from_the_options(gw: CliProgram, queue: Queue) -> None:
    gw("add", "mail", "--from", "-", "--priority", "7", "-q", "q", stdin=b'{}\n{"task": "other", "priority": 1}\n')

    assert queue.rows("select task_identifier, queue_name, priority from graphile_worker.jobs order by id") == [
        ("mail", "q", 7),
        ("other", "q", 1),
    ]


def test_empty_lines_and_a_byte_order_mark_are_nothing(gw: CliProgram, queue: Queue) -> None:
    assert gw("add", "--from", "-", stdin=b"\xef\xbb\xbf" + lines(1, "\n", "  \n", 2)).out == "2\n"
    assert numbers(queue) == [1, 2]


@pytest.mark.usefixtures("small_batches")
def test_progress_has_rate_and_share_of_the_file(
    gw: CliProgram, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_jobs, "PROGRESS_SECONDS", 0.0)
    (tmp_path / "jobs.jsonl").write_bytes(lines(1, 2, 3, 4))

    from_file, from_pipe = gw("add", "--from", "jobs.jsonl").err, gw("add", "--from", "-", stdin=lines(1, 2)).err

    assert re.search(r"^Added 4 jobs, [\d,]+/s, up to line 4, 100 % of the file …$", from_file, re.MULTILINE)
    assert re.search(r"^Added 2 jobs, [\d,]+/s, up to line 2 …$", from_pipe, re.MULTILINE)


def test_null_is_a_payload_of_its_own(gw: CliProgram, queue: Queue) -> None:
    gw("add", "mail", "-p", "null")
    gw("add", "mail")

    assert queue.rows("select payload::text from graphile_worker._private_jobs order by id") == [("null",), ("{}",)]


def test_an_empty_file_adds_nothing(gw: CliProgram, queue: Queue) -> None:
    ended = gw("add", "--from", "-", stdin=b"")

    assert (ended.code, ended.out, queue.ids()) == (0, "0\n", [])


@pytest.mark.usefixtures("small_batches")
def test_a_bad_line_stops_and_is_named_and_earlier_batches_stay(gw: CliProgram, queue: Queue) -> None:
    ended = gw("add", "--from", "-", stdin=lines(1, 2, 3, "{broken\n", 5))

    assert (ended.code, numbers(queue)) == (2, [1, 2])
    assert "Added 2 jobs of the lines up to 2, which stay" in ended.err
    assert "line 4: it is not a job as JSON" in ended.err


@pytest.mark.usefixtures("small_batches")
def test_bad_lines_are_skipped_when_asked_and_named(gw: CliProgram, queue: Queue) -> None:
    ended = gw("add", "--from", "-", "--on-error", "skip", "--json", stdin=lines(1, "{broken\n", 3, '{"tsk": 1}\n'))

    assert (ended.code, ended.json, numbers(queue)) == (1, {"added": 2, "skipped": 2, "last_line": 4}, [1, 3])
    assert "line 2 was skipped" in ended.err
    assert "line 4 was skipped: it is not a job as JSON: object contains unknown field `tsk`" in ended.err


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param('{"task": ""}', "the task identifier is empty", id="no task"),
        pytest.param("{}", "it names no task", id="no task named"),
        pytest.param('{"task": "t", "run_at": "soon"}', "is not a valid time", id="no moment"),
        pytest.param('{"task": "t", "priority": 40000}', "priority is 40000", id="priority out of range"),
        pytest.param('{"task": "t", "max_attempts": 0}', "max attempts is 0", id="no attempts"),
        pytest.param('{"task": "t", "payload": "\\u0000"}', "contains \\u0000", id="NUL"),
        pytest.param('{"task": "t", "payload": {"a": }}', "JSON is malformed", id="payload broken"),
        pytest.param(
            '{"task": "t", "job_key_mode": "preserve_run_at"}', "without a job key", id="a mode without a key"
        ),
        pytest.param('["task"]', "expected `object`", id="no object"),
        pytest.param('{"task": "t", "payload": [1,]}', "it is not a job as JSON", id="a comma too many"),
        pytest.param('{"task": "t", "job_key": "' + "k" * 513 + '"}', "513 characters", id="key too long"),
    ],
)
def test_a_line_that_is_no_job_is_explained(gw: CliProgram, queue: Queue, line: str, reason: str) -> None:
    ended = gw("add", "--from", "-", stdin=f"{line}\n".encode())

    assert (ended.code, ended.out, queue.ids()) == (2, "", [])
    assert "line 1: " in ended.err
    assert reason in ended.err


def test_lines_that_differ_in_their_payload_alone_are_each_their_own_job(gw: CliProgram, queue: Queue) -> None:
    text = b'{"payload": 1, "flags": ["a"]}\n{"flags": ["a"]}\n{"payload": 3, "flags": ["a"], "run_at": "+1h"}\n'
    gw("add", "t", "--from", "-", "--queue", "q", stdin=text)

    assert queue.rows(
        "select payload::text, flags, queue_name, run_at > now() from graphile_worker._private_jobs as jobs"
        " join graphile_worker._private_job_queues as queues on queues.id = jobs.job_queue_id order by jobs.id"
    ) == [("1", {"a": True}, "q", False), ("{}", {"a": True}, "q", False), ("3", {"a": True}, "q", True)]


def test_long_lines_make_small_batches(gw: CliProgram, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_jobs, "BATCH_BYTES", 1000)
    ended = gw(
        "add",
        "t",
        "--from",
        "-",
        stdin=b'{"payload": "'
        + b"x" * 600
        + b'"}\n'
        + b"{}\n" * 2
        + b'{"payload": "'
        + b"x" * 600
        + b'"}\n'
        + b"{broken",
    )

    assert (ended.code, len(queue.ids())) == (2, 4)


def test_backslashes_before_u0000_are_text(gw: CliProgram, queue: Queue) -> None:
    assert gw("add", "t", "--from", "-", stdin=rb'{"payload": "\\u0000"}').code == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"task,colour\n", "not 'colour'", id="an unknown column"),
        pytest.param(b"task,task\n", "each once", id="a column twice"),
        pytest.param(b"", "must name the columns", id="no columns"),
        pytest.param(b"task,queue_name\nmail\n", "line 2: the number of its cells is 1,", id="a cell missing"),
        pytest.param(b"task,payload\nmail,{\n", "line 2: the payload is not JSON", id="payload broken"),
        pytest.param(b"task,priority\nmail,x\n", "line 2: priority 'x'", id="no number"),
        pytest.param(b"task\nm\xff\n", "line 2 is not UTF-8", id="no UTF-8"),
    ],
)
def test_csv_that_is_none_is_explained(gw: CliProgram, queue: Queue, content: bytes, reason: str) -> None:
    ended = gw("add", "--from", "-", "--format", "csv", stdin=content)

    assert (ended.code, ended.out, queue.ids()) == (2, "", [])
    assert reason in ended.err


def test_a_job_only_postgresql_rejects_is_found_when_skipping(gw: CliProgram, queue: Queue) -> None:
    queue.rows("alter table graphile_worker._private_jobs add check (priority <> 13)")

    ended = gw("add", "t", "--from", "-", "--on-error", "skip", stdin=b'{}\n{"priority": 13}\n{}\n')

    assert (ended.code, len(queue.ids())) == (1, 2)
    assert "line 2 was skipped: PostgreSQL rejected a value" in ended.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(("--from", "none.jsonl"), "'none.jsonl' cannot be read: No such file", id="no file"),
        pytest.param(("--from", "-", "-p", "{}"), "the lines of the file have payloads and keys", id="a payload"),
        pytest.param(("--from", "-", "--on-error", "go"), "--on-error 'go'", id="no way to go on"),
        pytest.param(("--from", "-", "--format", "xml"), "--format 'xml'", id="no format"),
        pytest.param(("--from", "-", "--priority", "40000"), "priority is 40000", id="an option out of range"),
    ],
)
def test_wrong_words_are_rejected(gw: CliProgram, queue: Queue, arguments: tuple[str, ...], sentence: str) -> None:
    ended = gw("add", *arguments, stdin=b'{"task": "t"}\n')

    assert (ended.code, queue.ids(), sentence in ended.err) == (2, [], True)


INTERRUPTED = """
import os, signal
from gw_cli import import_jobs
from gw_core import JobKeyMode, JobSpec
from gw_cli.main import main
from gw_core import Client

import_jobs.BATCH = 2
def add_and_press_ctrl_c(self, specs):
    del Client.add_many
    ids = self.add_many(specs)
    os.kill(os.getpid(), signal.SIGINT)
    return ids

Client.add_many = add_and_press_ctrl_c
main()
"""


def test_an_interruption_ends_between_batches_and_says_how_far_it_came(queue: Queue, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "add", "--from", "-"],
        input=lines(*range(100)),
        env={**os.environ, "DATABASE_URL": queue.url, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )

    added = numbers(queue)
    assert (ended.returncode, ended.stdout) == (-signal.SIGINT, b"")
    assert added == list(range(len(added)))
    assert 0 < len(added) < 100
    assert f"Added {len(added)} jobs of the lines up to {len(added)}, which stay" in ended.stderr.decode()


def test_a_job_with_another_payload_is_the_same_in_everything_else() -> None:
    spec = JobSpec(
        task="t",
        payload=1,
        queue_name="q",
        run_at=timedelta(hours=1),
        max_attempts=3,
        job_key="k",
        job_key_mode=JobKeyMode.PRESERVE_RUN_AT,
        priority=-1,
        flags=("f",),
    )

    assert spec.with_payload(2) == replace(spec, payload=2)


def test_lines_may_wait_for_jobs_and_be_unique_for_a_time(gw: CliProgram, queue: Queue, tmp_path: Path) -> None:
    first, second = (int(gw("add", "mail").out) for _ in range(2))
    waiting = {"task": "report", "after": [first, second], "on_failure": "run"}
    unique = {"task": "mail", "payload": {"n": 1}, "unique_for": "1h"}
    text = "".join(json.dumps(each) + "\n" for each in (waiting, unique, unique))
    (tmp_path / "jobs.csv").write_text(f'task,after,unique_for\nreport,"{first}, {second}",\nmail,,1h\nmail,,1h\n')

    assert gw("add", "--from", "-", "--json", stdin=text.encode()).json == {"added": 2, "skipped": 0, "last_line": 3}
    assert gw("add", "--from", "jobs.csv").out == "2\n"
    assert gw("add", "--from", "jobs.csv").out == "1\n"

    assert [each["task"] for each in gw("list", "state:waiting", "--json").json] == 3 * ["report"]
    assert len(gw("list", "task:mail", "--json").json) == 4


def test_lines_may_expire(gw: CliProgram, queue: Queue) -> None:
    lines = '{"task": "mail", "expires_at": "2096-01-01T00:00:00Z"}\n{"task": "mail"}\n'
    assert gw("add", "--from", "-", "--expires-at", "2097-01-01T00:00:00Z", stdin=lines.encode()).out == "2\n"
    times = sorted(each["expires_at"] for each in gw("list", "--json").json)
    assert times == ["2096-01-01T00:00:00Z", "2097-01-01T00:00:00Z"]


def test_a_wrong_line_of_long_work_is_reported_with_its_number(gw: CliProgram) -> None:
    for line, message in (
        ('{"task": "t", "on_failure": "run"}', "line 1: on_failure was given without jobs to wait for"),
        ('{"task": "t", "after": ["x"]}', "line 1: it is not a job as JSON: expected `int`"),
        ('{"task": "t", "unique_for": "soon"}', "line 1: unique_for: "),
        ('{"task": "t", "expires_at": "soon"}', "line 1: expires_at: "),
        ('{"task": "t", "expires_at": "now"}', "line 1: expires_at must lie after now"),
    ):
        ended = gw("add", "--from", "-", stdin=f"{line}\n".encode())
        assert (ended.code, message in ended.err) == (2, True), ended.err
