"""What goes to stderr: errors in words, and the log of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gw_cli import stderr
from gw_cli.stderr import log_factory
from gw_core.operations import UNSAFE_TEXT as UNSAFE

JOB_SCOPE = {"label": "job", "worker_id": "gw-1", "thread": "worker-1", "task_identifier": "hello", "job_id": 7}


class CountingStream(BytesIO):
    """A stderr that counts the writes it takes."""

    writes = 0

    def write(self, data: Any) -> int:
        self.writes += 1
        return super().write(data)


def text_sink(stream: BytesIO, scope: Mapping[str, object] | None = None, *, level: str = "debug") -> Any:
    return log_factory(level=level, log_format="text", raw=stream, colour=False)(scope or {})


def json_sink(stream: BytesIO, scope: Mapping[str, object] | None = None, *, level: str = "debug") -> Any:
    return log_factory(level=level, log_format="json", raw=stream)(scope or {})


def a_raised_error() -> ValueError:
    # Compiled under a name of the user's, since frames of the test's own tools would show as well.
    code = compile("def work():\n    raise ValueError('no\\x1bgood')\nwork()", "/srv/app/tasks/mail.py", "exec")
    try:
        exec(code, {"__name__": "mail"})  # noqa: S102
    except ValueError as error:
        return error
    raise AssertionError


# -- words -------------------------------------------------------------------------------------------------------------


def test_an_error_is_one_harmless_line(capsys: pytest.CaptureFixture[str]) -> None:
    stderr.error("bad \x1b[31mtask")

    assert capsys.readouterr() == ("", "gw: bad \\x1b[31mtask\n")


def test_an_error_of_several_lines_is_set_in(capsys: pytest.CaptureFixture[str]) -> None:
    stderr.error("cannot import\nFile tasks/a.py\n")

    assert capsys.readouterr().err == "gw: cannot import\n    File tasks/a.py\n"


def test_errors_go_the_way_of_a_json_log_once_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = BytesIO()
    monkeypatch.setattr(stderr._VOICE, "sink", json_sink(stream, {"label": "core"}))

    stderr.error("no such schema")

    assert json.loads(stream.getvalue())["message"] == "no such schema"


# -- the text log ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "line"),
    [
        pytest.param({}, "[core] INFO: hi\n", id="without a scope"),
        pytest.param({"label": "worker"}, "[worker] INFO: hi\n", id="of the workers"),
        pytest.param(JOB_SCOPE, "[job(worker-1: hello{7})] INFO: hi\n", id="of a job"),
        pytest.param(
            {"label": "job", "task_identifier": "a\x1b]", "job_id": 7},
            "[job(a\\x1b]{7})] INFO: hi\n",
            id="of a bad name",
        ),
    ],
)
def test_a_line_says_who_speaks(scope: dict[str, object], line: str) -> None:
    stream = BytesIO()

    text_sink(stream, scope)("info", "hi", None)

    assert stream.getvalue().decode() == line


def test_what_does_not_reach_the_level_is_not_written() -> None:
    stream = BytesIO()
    sink = text_sink(stream, level="warning")

    for level in ("debug", "info", "warning", "error"):
        sink(level, level, None)
        sink.many(level, ["many"])

    lines = [f"[core] {level.upper()}: {text}" for level in ("warning", "error") for text in (level, "many")]
    assert stream.getvalue().decode().splitlines() == lines
    assert [sink.enabled(level) for level in ("debug", "info", "warning", "error")] == [False, False, True, True]


def test_a_batch_is_one_write() -> None:
    stream = CountingStream()

    text_sink(stream).many("info", ["one", "two", "three"])

    assert stream.writes == 1
    assert stream.getvalue() == b"[core] INFO: one\n[core] INFO: two\n[core] INFO: three\n"


@pytest.mark.parametrize("message", ["a\nb", "a\x1b[2J", "a\u202eb"])
def test_a_message_cannot_pose_as_a_line_of_ours(message: str) -> None:
    alone, batch = BytesIO(), BytesIO()

    text_sink(alone)("info", message, None)
    text_sink(batch).many("info", ["fine", message])

    for text in (alone.getvalue().decode(), batch.getvalue().decode()):
        assert not UNSAFE.search(text.replace("\n", ""))
        assert all(line.startswith(("[core] INFO: ", "    ")) for line in text.splitlines())


def test_an_error_of_a_task_shows_the_places_in_its_code_innermost_first() -> None:
    stream = BytesIO()

    text_sink(stream)("error", "Failed task 7", {"error": a_raised_error()})

    head, *places = stream.getvalue().decode().splitlines()
    assert head == "[core] ERROR: Failed task 7"
    assert places[:2] == [
        "    at /srv/app/tasks/mail.py:2 in work",
        "    at /srv/app/tasks/mail.py:3 in <module>",
    ]


def test_deep_errors_show_the_innermost_places_only() -> None:
    def dig(depth: int) -> None:
        if depth == 0:
            raise ValueError
        dig(depth - 1)

    with pytest.raises(ValueError) as raised:
        dig(50)

    assert len(stderr.frames_of(raised.value)) == stderr.MOST_FRAMES


def test_levels_are_coloured_on_a_terminal_only() -> None:
    plain, coloured = BytesIO(), BytesIO()

    text_sink(plain)("error", "x", None)
    log_factory(level="info", log_format="text", raw=coloured, colour=True)({})("error", "x", None)

    assert plain.getvalue() == b"[core] ERROR: x\n"
    assert coloured.getvalue() == b"[core] \x1b[31mERROR\x1b[0m: x\n"


def test_a_log_without_a_reader_does_no_harm() -> None:
    class Gone(CountingStream):
        def write(self, data: Any) -> int:
            super().write(data)
            raise BrokenPipeError

    stream = Gone()
    sink = text_sink(stream)

    sink("info", "one", None)
    sink("info", "two", None)

    assert stream.writes == 1


def test_a_slow_reader_gets_every_byte() -> None:
    class Slow(CountingStream):
        def write(self, data: Any) -> int:
            return super().write(data[:7])

    stream = Slow()

    text_sink(stream)("info", "a message longer than one write takes", None)

    assert stream.getvalue() == b"[core] INFO: a message longer than one write takes\n"


def test_a_signal_may_log_in_the_middle_of_a_write() -> None:
    class Interrupted(CountingStream):
        def write(self, data: Any) -> int:
            if self.writes == 0:
                self.writes += 1
                sink("info", "received a signal", None)
            return super().write(data)

    stream = Interrupted()
    sink = text_sink(stream)

    sink("info", "at work", None)

    assert stream.getvalue() == b"[core] INFO: received a signal\n[core] INFO: at work\n"


def test_half_a_character_does_not_stop_the_log() -> None:
    stream = BytesIO()

    text_sink(stream)("info", "a\ud800", None)
    text_sink(stream, {"label": "x\udfff"}).many("info", ["fine"])

    assert stream.getvalue().decode() == "[core] INFO: a\\ud800\n[x\\udfff] INFO: fine\n"


# -- the JSON log ------------------------------------------------------------------------------------------------------


def test_a_json_line_carries_the_scope() -> None:
    stream = BytesIO()

    json_sink(stream, JOB_SCOPE)("info", "a\nb\x7f", None)

    line = stream.getvalue().decode()
    entry = json.loads(line)
    assert line.count("\n") == 1
    assert not UNSAFE.search(line[:-1])
    assert entry.pop("ts").endswith("Z")
    assert entry == {
        "level": "info",
        "message": "a\nb\x7f",
        "label": "job",
        "worker_id": "gw-1",
        "thread": "worker-1",
        "task_identifier": "hello",
        "job_id": 7,
    }


def test_a_json_line_marks_an_error() -> None:
    stream = BytesIO()

    json_sink(stream)("error", "failed", {"error": a_raised_error(), "count": 3, "level": "spoofed"})

    entry = json.loads(stream.getvalue())
    assert entry["error"]["type"] == "ValueError"
    assert entry["error"]["message"] == "no\x1bgood"
    assert entry["error"]["frames"][0] == "/srv/app/tasks/mail.py:2 in work"
    assert (entry["count"], entry["level"]) == (3, "error")


def test_what_cannot_be_written_as_text_does_not_stop_the_log() -> None:
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    class Mute:
        def __str__(self) -> str:
            raise RuntimeError

    stream = BytesIO()
    json_sink(stream, {"scope": Mute()})("info", "on", {"error": BrokenError(), "thing": Mute()})

    entry = json.loads(stream.getvalue())
    assert (entry["message"], entry["error"]["type"], entry["thing"]) == ("on", "BrokenError", "(Mute)")


def test_a_batch_in_json_is_one_write() -> None:
    stream = CountingStream()

    json_sink(stream, JOB_SCOPE).many("info", ["one", "two"])

    assert stream.writes == 1
    entries = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [entry["message"] for entry in entries] == ["one", "two"]
    assert all(entry["label"] == "job" and entry["level"] == "info" and entry["ts"] for entry in entries)


@given(st.lists(st.text(st.characters()), min_size=1))
def test_a_batch_in_json_steers_nothing_and_loses_nothing(messages: list[str]) -> None:
    stream = BytesIO()

    json_sink(stream).many("info", messages)

    lines = stream.getvalue().decode().split("\n")[:-1]
    assert [json.loads(line)["message"] for line in lines] == messages
    assert not any(map(UNSAFE.search, lines))
