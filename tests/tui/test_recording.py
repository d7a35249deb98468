"""A recording plays back what was seen, when it was seen, and holds no secret."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from console_fixture import Console, console_on
from support.console_queue import START
from support.console_source import QueueSource

from gw_core import JobState, Selection
from gw_core.errors import DatabaseUnavailableError, GraphileWorkerError, InvalidInputError
from gw_core.front_ends import NameKind, PageCursor, QueueSnapshot
from gw_core.selection import parse
from gw_tui.data.recording import RecordingSource, ReplaySource


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def first_secret(source: QueueSource) -> int:
    """Return a job whose payload holds a secret."""
    return next(job.id for job in source.queue.by_id.values() if "s3cr3t" in job.payload_json)


QUERIES: dict[str, Callable[[Any], object]] = {
    "snapshot": lambda source: source.snapshot(),
    "page": lambda source: source.page(Selection()),
    "page of failed jobs": lambda source: source.page(Selection.of(state=JobState.FAILED), limit=3),
    "next page": lambda source: source.page(Selection(), after=PageCursor.after_id(99_100)),
    "job": lambda source: source.job(99_007),
    "no job": lambda source: source.job(1),
    "statistics": lambda source: source.statistics(),
    "queues": lambda source: source.queues(),
    "held queues": lambda source: source.queues(only_locked=True),
    "crontabs": lambda source: source.crontabs(),
    "findings": lambda source: source.findings(),
    "blockages": lambda source: source.blockages(),
    "names": lambda source: source.names(NameKind.TASKS),
}


def plain(answer: object) -> object:
    return msgspec.json.decode(msgspec.json.encode(answer))


@pytest.mark.parametrize("name", ["session.jsonl", "session.jsonl.gz"])
def test_every_answer_is_played_back_as_it_was(tmp_path: Path, name: str) -> None:
    recorder = RecordingSource(QueueSource(), tmp_path / name)
    answers = {each: query(recorder) for each, query in QUERIES.items()}
    recorder.close()

    replay = ReplaySource(tmp_path / name)

    masked = {"job"}
    for each, query in QUERIES.items():
        if each not in masked:
            assert plain(query(replay)) == plain(answers[each]), each
    assert replay.job(99_007) is not None
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_answers_come_when_they_came_and_the_last_one_stays(tmp_path: Path) -> None:
    source, clock = QueueSource(), Clock()
    recorder = RecordingSource(source, tmp_path / "r", clock)
    first = recorder.snapshot()
    clock.now += 5
    source.clock.advance(5)
    second = recorder.snapshot()
    recorder.close()
    assert first.at == START < second.at

    replay = ReplaySource(tmp_path / "r", clock)
    timestamps = []
    for _ in range(4):
        timestamps.append(replay.snapshot().at)
        clock.now += 3

    assert timestamps == [first.at, first.at, second.at, second.at]


def test_no_secret_is_written_down(tmp_path: Path) -> None:
    demo = QueueSource()
    job_id = first_secret(demo)
    demo.queue.alter(demo.queue.by_id[job_id], last_error="refused: postgres://app:hunter2@db/shop")
    recorder = RecordingSource(demo, tmp_path / "r")
    recorder.job(job_id)
    recorder.page(Selection.of(id=(job_id,)), with_payload=True)
    recorder.close()

    text = (tmp_path / "r").read_text("utf-8")
    assert "s3cr3t" not in text
    assert "hunter2" not in text
    report = ReplaySource(tmp_path / "r").job(job_id)
    assert report is not None
    assert "welcome" in report.job.payload_json


def test_errors_of_history_are_masked_as_on_the_screen(tmp_path: Path) -> None:
    source = QueueSource()
    source.queue.run("update _private_gw_history set error = 'refused: postgres://app:hunter2@db/shop'")
    recorder = RecordingSource(source, tmp_path / "r")
    assert recorder.history().attempts[0].error == "refused: postgres://app:hunter2@db/shop"
    recorder.close()

    assert "hunter2" not in (tmp_path / "r").read_text("utf-8")
    assert ReplaySource(tmp_path / "r").history().attempts[0].error.startswith("refused: postgres://app:")


def test_a_search_by_time_is_found_again(tmp_path: Path) -> None:
    recorder = RecordingSource(QueueSource(), tmp_path / "r")
    answer = recorder.page(parse("run_at:<+1h"))
    recorder.close()

    assert plain(ReplaySource(tmp_path / "r").page(parse("run_at:<+60m"))) == plain(answer)


def test_a_failure_is_played_back_as_a_failure(tmp_path: Path) -> None:
    demo, clock = QueueSource(), Clock()
    recorder = RecordingSource(demo, tmp_path / "r", clock)
    recorder.snapshot()
    clock.now += 1
    demo.go_down(DatabaseUnavailableError("the server went away, password=hunter2"))
    with pytest.raises(DatabaseUnavailableError):
        recorder.snapshot()
    recorder.close()

    replay = ReplaySource(tmp_path / "r", clock)
    replay.snapshot()
    clock.now += 1
    with pytest.raises(DatabaseUnavailableError, match="the server went away") as caught:
        replay.snapshot()
    assert "hunter2" not in str(caught.value)


def test_a_recording_says_what_it_does_not_hold_and_takes_no_acts(tmp_path: Path) -> None:
    RecordingSource(QueueSource(), tmp_path / "r").close()
    replay = ReplaySource(tmp_path / "r")

    with pytest.raises(GraphileWorkerError, match="not in the recording"):
        replay.job(7)
    with pytest.raises(GraphileWorkerError, match="actions are unavailable"):
        replay.run(cast(Any, None))
    assert replay.info.is_read_only
    assert replay.info.where == "app@demo/shop (replay)"


def test_a_recording_that_was_cut_short_plays_up_to_there(tmp_path: Path) -> None:
    recorder = RecordingSource(QueueSource(), tmp_path / "r")
    recorder.snapshot()
    recorder.statistics()
    recorder.close()
    whole = (tmp_path / "r").read_bytes()
    (tmp_path / "r").write_bytes(whole[:-10])

    replay = ReplaySource(tmp_path / "r")

    assert replay.snapshot().at == START
    with pytest.raises(GraphileWorkerError, match="not in the recording"):
        replay.statistics()


@pytest.mark.parametrize("text", ["", "no json\n", '{"at": 1}\n', "[]\n"])
def test_a_file_that_is_no_recording_is_rejected(tmp_path: Path, text: str) -> None:
    (tmp_path / "r").write_text(text)

    with pytest.raises(InvalidInputError, match="is not a console recording"):
        ReplaySource(tmp_path / "r")


def test_a_file_that_is_there_already_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("mine")

    with pytest.raises(FileExistsError):
        RecordingSource(QueueSource(), tmp_path / "r")
    assert (tmp_path / "r").read_text() == "mine"


def test_a_disk_that_is_full_ends_the_recording_and_not_the_console(tmp_path: Path) -> None:
    recorder = RecordingSource(QueueSource(), tmp_path / "r")
    assert recorder.file is not None
    recorder.file.close()
    recorder.file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115 - the recorder closes it

    assert recorder.snapshot().at == START
    assert recorder.statistics().at == START
    assert recorder.failure == "No space left on device"
    recorder.close()


def five_seconds(path: Path) -> tuple[QueueSnapshot, QueueSnapshot]:
    """Record a queue at its beginning and five seconds later."""
    source, clock = QueueSource(), Clock()
    recorder = RecordingSource(source, path, clock)
    first = recorder.snapshot()
    clock.now += 5
    source.clock.advance(5)
    second = recorder.snapshot()
    recorder.close()
    return first, second


def test_a_recording_is_paused_moved_and_marks_its_end(tmp_path: Path) -> None:
    first, second = five_seconds(tmp_path / "r")
    clock = Clock()
    replay = ReplaySource(tmp_path / "r", clock)
    playback = replay.playback

    clock.now += 3
    playback.toggle()
    clock.now += 100
    assert (playback.is_paused, playback.position, replay.snapshot().at) == (True, 3.0, first.at)
    playback.seek(30)
    assert (playback.is_over, replay.snapshot().at) == (True, second.at)
    playback.seek(-4)
    assert (playback.is_over, playback.position, replay.snapshot().at) == (False, 1.0, first.at)
    playback.toggle()
    clock.now += 60
    assert (playback.is_over, playback.position) == (True, 5.0)
    playback.toggle()
    assert (playback.is_over, playback.is_paused, playback.position) == (False, False, 0.0)


def test_the_console_says_that_it_replays_and_where_it_is(tmp_path: Path) -> None:
    five_seconds(tmp_path / "r")
    clock = Clock()

    async def inside() -> None:
        app = console_on(ReplaySource(tmp_path / "r", clock), period=30.0)
        async with app.run_test(size=(120, 24)) as pilot:
            console = Console(app, pilot, QueueSource())
            await console.shows("REPLAY 00:00 of 00:05")
            assert "LIVE" not in console.text
            await console.press("space")
            await console.shows("REPLAY PAUSED 00:00 of 00:05")
            await console.press("greater_than_sign")
            await console.shows("REPLAY ENDED 00:05 of 00:05")
            await console.press("less_than_sign")
            await console.shows("REPLAY PAUSED 00:00 of 00:05")

    asyncio.run(inside())


def test_a_recording_of_a_recording_says_that_it_replays(tmp_path: Path) -> None:
    five_seconds(tmp_path / "first")

    async def inside() -> None:
        recorder = RecordingSource(ReplaySource(tmp_path / "first", Clock()), tmp_path / "second")
        app = console_on(recorder, period=30.0)
        async with app.run_test(size=(120, 24)) as pilot:
            console = Console(app, pilot, QueueSource())
            await console.shows("REPLAY 00:00 of 00:05")
            assert "LIVE" not in console.text
            assert app.is_listening

    asyncio.run(inside())


def test_the_console_shows_a_recording_read_only(tmp_path: Path) -> None:
    recorder = RecordingSource(QueueSource(), tmp_path / "r")
    snapshot, page = recorder.snapshot(), recorder.page(Selection(), limit=100)
    recorder.close()

    async def inside() -> None:
        app = console_on(ReplaySource(tmp_path / "r"), period=30.0, screen="jobs")
        async with app.run_test(size=(80, 24)) as pilot:
            console = Console(app, pilot, QueueSource())
            await console.shows("READ-ONLY")
            await console.until(lambda: app.snapshot is not None)
            assert app.snapshot is not None
            assert app.snapshot.at == snapshot.at
            assert app.check_action("sweep_now", ()) is False
            assert page.jobs

    asyncio.run(inside())
