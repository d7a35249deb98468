"""The supervisor, with processes that do nothing but live and die."""

from __future__ import annotations

import itertools
import os
import signal
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from supervised import Supervised, quick_pauses, set_pauses, supervising, wait_until
from support.stall_clock import StallClock

from gw_core.domain.rules import stop_signals
from gw_core.front_ends import ProcessEnded, ProcessesKilled, ProcessReady, SupervisorGaveUp


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_pauses(monkeypatch)


def stop(running: Supervised) -> int:
    running.supervisor.stop("the test asked")
    return running.end()


# -- starting ---------------------------------------------------------------------------------------------------------


def test_the_first_process_announces_and_the_others_follow_when_it_is_ready() -> None:
    with Supervised({}, processes=3) as running:
        running.recorded.wait_for(ProcessReady, count=3)

        assert running.commands == [(1, True), (2, False), (3, False)]
        assert stop(running) == 0


def test_when_the_first_cannot_run_no_other_is_tried() -> None:
    with Supervised({"ready": False, "code": 8}, processes=3, fatal_codes=(8,)) as running:
        assert running.end() == 8

    assert running.commands == [(1, True)]
    # Its own error is the only message about it.
    assert [message for level, message in running.logged if level in ("warning", "error")] == []


def test_processes_that_die_whenever_they_start_are_given_up() -> None:
    with Supervised({"ready": False, "signal": signal.SIGSEGV}, processes=2) as running:
        assert running.end() == 128 + signal.SIGSEGV

    assert len(running.commands) == 5
    assert [event.number for event in running.recorded.of(SupervisorGaveUp)] == [1]


# -- replacing --------------------------------------------------------------------------------------------------------


def test_a_process_that_is_killed_is_started_again_in_its_place() -> None:
    with Supervised({}, processes=2) as running:
        running.recorded.wait_for(ProcessReady, count=2)
        os.kill(running.pids()[1], signal.SIGKILL)
        running.recorded.wait_for(ProcessReady, count=3)

        (ended,) = running.recorded.of(ProcessEnded)
        assert (ended.number, ended.graceful, "SIGKILL" in ended.exit_reason) == (2, False, True)
        assert [number for number, _ in running.commands] == [1, 2, 2]
        assert stop(running) == 0


def test_a_process_that_ends_gracefully_is_replaced_immediately() -> None:
    with Supervised({"code": 0}, {}) as running:
        running.recorded.wait_for(ProcessReady, count=2)

        (ended,) = running.recorded.of(ProcessEnded)
        assert (ended.graceful, ended.restart_in) == (True, timedelta(0))


def test_an_end_that_cannot_be_fixed_ends_the_others_too() -> None:
    with Supervised({}, {"code": 57}, processes=2, fatal_codes=(57,)) as running:
        assert running.end() == 57

    assert [event.number for event in running.recorded.of(SupervisorGaveUp)] == [2]
    assert len(running.last_words()) == 2


def test_in_a_single_run_nothing_is_started_again_and_the_worst_code_counts(tmp_path: Path) -> None:
    go = tmp_path / "go"
    scripts = [{"waits_for": str(go), "code": code} for code in (0, 1, 0)]
    with Supervised(*scripts, processes=3, once=True) as running:
        running.recorded.wait_for(ProcessReady, count=3)
        go.touch()

        assert running.end() == 1
    assert len(running.commands) == 3


# -- stopping ---------------------------------------------------------------------------------------------------------


def test_all_are_asked_to_stop_with_a_reason() -> None:
    with Supervised({}, processes=2) as running:
        running.recorded.wait_for(ProcessReady, count=2)
        assert stop(running) == 0

    assert [words["reasons"] for words in running.last_words()] == [["the test asked"]] * 2


def test_one_that_starts_without_a_database_while_all_are_asked_to_stop_spoils_no_graceful_end(tmp_path: Path) -> None:
    go = tmp_path / "go"
    starting = {"ready": False, "waits_for": str(go), "stubborn": True, "code": 3}
    with Supervised(starting, transient_codes=(3,)) as running:
        wait_until(running.pids)
        running.supervisor.stop("the test asked")
        go.touch()

        assert running.end() == 0
    (ended,) = running.recorded.of(ProcessEnded)
    assert ended.graceful


def test_one_that_worked_and_lost_its_database_at_the_end_is_reported(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with Supervised({"waits_for": str(go), "stubborn": True, "code": 3}, transient_codes=(3,)) as running:
        running.recorded.wait_for(ProcessReady)
        running.supervisor.stop("the test asked")
        go.touch()

        assert running.end() == 3


def test_a_later_signal_forces_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_signals, "REPEAT_SECONDS", 0.0)
    with Supervised({"stubborn": True}, processes=2) as running:
        running.recorded.wait_for(ProcessReady, count=2)
        for _ in range(2):
            running.deliver(lambda: running.supervisor.on_signal("SIGTERM"))

        assert running.end() == 128 + signal.SIGTERM
    assert [words["reasons"] for words in running.last_words()] == [["received SIGTERM", "force"]] * 2


def test_what_does_not_end_is_killed_after_the_grace_period(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervising, "KILL_DELAY", timedelta(seconds=0.1))
    with Supervised({"stubborn": "to the last"}, processes=2, grace=0.1) as running:
        running.recorded.wait_for(ProcessReady, count=2)

        with StallClock() as watch:
            assert stop(running) == 128 + signal.SIGKILL
    assert watch.seconds < 30
    assert [event.numbers for event in running.recorded.of(ProcessesKilled)] == [(1, 2)]
    assert {event.exit_reason for event in running.recorded.of(ProcessEnded)} == {"was ended by SIGKILL"}


def test_only_what_has_not_ended_by_then_is_killed() -> None:
    with Supervised({"stubborn": "to the last"}, {}, processes=2, grace=600) as running:
        running.recorded.wait_for(ProcessReady, count=2)
        running.supervisor.stop("the test asked")
        running.recorded.wait_for(ProcessEnded, lambda event: event.number == 2)
        ordered = running.supervisor._stop
        assert ordered is not None
        running.deliver(lambda: running.supervisor._kill(ordered))

        assert running.end() == 128 + signal.SIGKILL
    assert [event.numbers for event in running.recorded.of(ProcessesKilled)] == [(1,)]


@pytest.mark.parametrize("news", [False, True], ids=["nothing else", "one that ended at the same moment"])
@pytest.mark.parametrize(
    ("stall", "fails"), [(6.0, False), (0.1, True)], ids=["the machine stood still", "it was only busy"]
)
def test_no_process_is_killed_before_its_time_to_end(
    monkeypatch: pytest.MonkeyPatch, stall: float, fails: bool, news: bool
) -> None:
    supervisor = Supervised({}).supervisor
    supervisor.checked_at = 100.0
    supervisor._stop = stopping = supervising.StopRequest("the test asked", 0, kill_at=100.05)
    clock = iter([100.0, 100.0, *[100.05 + stall] * 10])
    monkeypatch.setattr(supervising, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    if news:
        supervisor.actions.put(lambda: None)

    for _ in range(1 + news):
        supervisor.step()

    assert (stopping.kill_at is None) is fails, "it was killed"


def test_a_machine_that_stalls_again_and_again_does_not_postpone_the_kill_forever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    supervisor = Supervised({}).supervisor
    supervisor.checked_at = 0.0
    supervisor._stop = stopping = supervising.StopRequest("the test asked", 0, kill_at=5.0)
    clock = itertools.count(10.0, 0.5)  # each check is late
    monkeypatch.setattr(supervising, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    steps = 0
    while stopping.kill_at is not None:
        supervisor.step()
        steps += 1
        assert steps <= 100, "it was never killed"

    assert stopping.extensions == supervising.MAX_EXTENSIONS


def test_what_does_not_end_after_a_forced_stop_is_killed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervising, "KILL_DELAY", timedelta(seconds=0.1))
    with Supervised({"stubborn": "to the last"}, grace=600) as running:
        running.recorded.wait_for(ProcessReady)
        running.supervisor.stop()
        running.supervisor.force()

        assert running.end() == 128 + signal.SIGKILL


def test_a_stop_while_one_waits_to_be_started_again_does_not_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    set_pauses(monkeypatch, first=timedelta(seconds=600), most=timedelta(seconds=600))
    with Supervised({"code": 1}, processes=1) as running:
        running.recorded.wait_for(ProcessEnded)

        assert stop(running) == 0


def test_processes_notice_that_their_supervisor_is_gone() -> None:
    with Supervised({}) as running:
        running.recorded.wait_for(ProcessReady)
        (process,) = running.supervisor.running()
        process._line.shutdown(2)
        running.recorded.wait_for(ProcessEnded)

        assert process.code == 0


# -- what they write --------------------------------------------------------------------------------------------------


def test_lines_are_passed_on_whole(tmp_path: Path) -> None:
    half = "x" * 40_000
    script: dict[str, Any] = {"says": ["one ", "line\n", half, half, "\n", "the rest"]}
    with Supervised(script, processes=2) as running:
        running.recorded.wait_for(ProcessReady, count=2)
        stop(running)

    written = [text for channel, text in running.written if channel == "stderr"]
    assert all(text.endswith("\n") for text in written)
    assert sorted("".join(written).splitlines()) == sorted(["one line", half + half, "the rest"] * 2)


def test_a_process_that_closes_its_line_is_still_listened_to(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with Supervised({"hangs_up": True, "waits_for": str(go), "code": 7}, once=True) as running:
        running.recorded.wait_for(ProcessReady)
        go.touch()

        assert running.end() == 7
    assert len(running.last_words()) == 1


def test_a_line_without_end_does_not_grow_our_memory() -> None:
    from gw_core.processes.process import MAX_BUFFERED_BYTES, WholeLines

    passed: list[bytes] = []
    lines = WholeLines("stderr", lambda channel, text: passed.append(text), limit=MAX_BUFFERED_BYTES)
    for _ in range(3 * MAX_BUFFERED_BYTES // 65_536):
        lines.feed(b"x" * 65_536)

    assert 2 <= len(passed) <= 3
    assert max(map(len, passed)) < MAX_BUFFERED_BYTES + 2 * 65_536


def test_the_stdin_of_a_process_is_empty_and_the_line_is_not_its() -> None:
    with Supervised({}) as running:
        running.recorded.wait_for(ProcessReady)
        stop(running)

    wait_until(running.last_words)
    assert [words["stdin"] for words in running.last_words()] == [""]
