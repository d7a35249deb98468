"""The action log records what the console did, and removed jobs can be found in it."""

from __future__ import annotations

import io
import json
import os
import stat
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from console_fixture import Console, run
from support.cli_program import CliProgram
from support.console_source import QueueSource

from gw_cli import job_files
from gw_core import Job, JobSpec, JobState, Selection
from gw_tui.actions import (
    Action,
    Add,
    Complete,
    CountExactly,
    Fail,
    Pause,
    Reschedule,
    Restore,
    Result,
    Resume,
    Retry,
    Sweep,
    Unlock,
)
from gw_tui.actions.log import ActionLog, Payloads
from gw_tui.data.poller import ActionThread
from gw_tui.rules.options import Options, QueueInfo

TARGET = QueueInfo(where="demo", schema="graphile_worker")


@pytest.fixture
def log(tmp_path: Path) -> ActionLog:
    return ActionLog(tmp_path / "state" / "gw" / "actions.jsonl")


def lines(log: ActionLog) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.path.read_text("utf-8").splitlines()]


def seen(source: Any, state: JobState, count: int = 1) -> list[Job]:
    return [each.job for each in source.page(Selection.of(state=state), limit=count).jobs]


def test_a_line_says_who_did_what_to_which_jobs_and_what_became_of_them(log: ActionLog) -> None:
    source = QueueSource()
    first, second = seen(source, JobState.FAILED, 2)
    source.queue.delete(second.id)

    ActionThread(source, lambda _: None, log).turn(Retry(jobs=[first, second]))

    (line,) = lines(log)
    assert line["action"] == "retry"
    assert line["ids"] == [first.id, second.id]
    assert line["completed"] == [str(first.id)]
    assert list(line["skipped"]) == [str(second.id)]
    assert (line["target"], line["schema"]) == (source.info.where, "graphile_worker")
    assert line["user"]
    assert line["at"].endswith("Z")


def test_a_line_about_a_pause_keeps_the_name_of_the_database(log: ActionLog) -> None:
    log.note(TARGET, Pause(target="task:mail", reason="full"), Result(done=("task:mail",)))
    log.note(TARGET, Resume(target="task:mail"), Result(done=("task:mail",)))

    pause, resume = lines(log)
    assert (pause["target"], pause["paused"], pause["reason"]) == (TARGET.where, "task:mail", "full")
    assert (resume["target"], resume["resumed"]) == (TARGET.where, "task:mail")


def test_what_was_removed_is_there_whole_and_can_be_added_by_the_command(log: ActionLog) -> None:
    source = QueueSource()
    (job,) = seen(source, JobState.SCHEDULED)
    payload = source.queue.by_id[job.id].payload_json

    ActionThread(source, lambda _: None, log).turn(Complete(jobs=[job]))

    (removed,) = lines(log)[0]["deleted"]
    assert removed["id"] == job.id
    assert removed["job"]["payload"] == json.loads(payload)
    text = io.BytesIO(json.dumps(removed["job"]).encode())
    ((_, spec),) = job_files.read(text, as_csv=False, defaults={})
    assert isinstance(spec, JobSpec)
    assert spec.task == removed["job"]["task"]


def test_a_job_that_expires_is_added_again_with_its_time_until_it_has_started(log: ActionLog) -> None:
    job = next(each for each in QueueSource().queue.by_id.values() if not each.attempts)
    flags = '{"heavy": true, "gw:expires:4070908800000000": true}'
    unstarted = msgspec.structs.replace(job, _flags=flags)
    started = msgspec.structs.replace(unstarted, attempts=1, max_attempts=5)

    log.note(TARGET, Complete(jobs=[unstarted, started]), Result(removed=(unstarted, started)))

    added = [each["job"] for each in lines(log)[0]["deleted"]]
    assert [each.get("expires_at") for each in added] == ["2099-01-01T00:00:00+00:00", None]
    text = io.BytesIO(json.dumps(added[0]).encode())
    ((_, spec),) = job_files.read(text, as_csv=False, defaults={})
    assert isinstance(spec, JobSpec)
    assert (spec.flags, spec.expires_at) == (("heavy",), unstarted.expires_at)


def test_a_payload_of_several_lines_keeps_its_numbers_and_takes_one_line(log: ActionLog) -> None:
    payload = '{\n  "id": 90071992547409931,\n  "amount": 1.10\n}'

    log.note(TARGET, Add(spec=JobSpec(task="mail"), payload=payload), Result(done=("1",)))

    assert '{"id":90071992547409931,"amount":1.10}' in log.path.read_text("utf-8")
    assert len(lines(log)) == 1


def test_a_failure_is_written_down_with_its_reason(log: ActionLog) -> None:
    source = QueueSource()
    (job,) = seen(source, JobState.FAILED)
    source.go_down(OSError("nobody there"))

    ActionThread(source, lambda _: None, log).turn(Retry(jobs=[job]))

    assert "nobody there" in lines(log)[0]["failure"]


@pytest.mark.parametrize(
    "action",
    [
        Reschedule(jobs=(), run_at=timedelta(hours=1), priority=3),
        Fail(jobs=(), reason="enough"),
        Unlock(workers=("w",)),
        Sweep(),
        Restore(jobs=()),
    ],
    ids=lambda action: type(action).__name__,
)
def test_every_kind_of_act_can_be_written_down(log: ActionLog, action: Action) -> None:
    log.note(TARGET, action, Result())

    assert lines(log)[0]["action"] == type(action).__name__.lower()


def test_what_only_reads_is_not_recorded(log: ActionLog) -> None:
    for action in (Sweep(dry_run=True), CountExactly()):
        log.note(TARGET, action, Result())

    assert not log.path.exists()


def test_only_its_owner_may_read_the_file(log: ActionLog) -> None:
    log.note(TARGET, Sweep(), Result())

    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600


def test_an_action_is_done_and_its_operator_informed_when_it_cannot_be_recorded(tmp_path: Path) -> None:
    blocked = tmp_path / "actions.jsonl"
    blocked.mkdir()

    async def scenario(console: Console) -> None:
        await console.press("r")
        await console.until(lambda: any("cannot be written" in entry.words for entry in console.state.journal))
        assert isinstance(console.source.actions[0], Retry)

    run(scenario, filter="state:failed", action_log=blocked)


def test_a_failed_job_is_not_run_again_by_the_documented_command(log: ActionLog) -> None:
    source = QueueSource()
    found = next(each for each in source.queue.states() if each.state is JobState.FAILED)

    ActionThread(source, lambda _: None, log).turn(Complete(jobs=[found.job]))

    (removed,) = lines(log)[0]["deleted"]
    assert "job" not in removed
    assert removed["failed_job"]["attempts"] == found.job.attempts
    assert removed["failed_job"]["max_attempts"] == found.job.max_attempts
    assert removed["failed_job"]["last_error"] == found.job.last_error


# -- how much is kept, and for how long --------------------------------------------------------------------------------

SECRET = '{"user": "me", "token": "hunter2"}'


def removal(source: Any) -> tuple[Complete, Result]:
    job = next(each for each in source.queue.by_id.values() if each.attempts < each.max_attempts)
    gone = msgspec.structs.replace(job, payload_json=SECRET)
    return Complete(jobs=[gone]), Result(done=(str(job.id),), removed=(gone,))


def test_a_file_that_is_large_is_put_aside_in_place_of_the_one_before(
    log: ActionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gw_tui.actions.log.MAX_BYTES", 2_000)
    source = QueueSource()
    done = removal(source)
    for _ in range(50):
        log.note(source.info, *done)

    assert sorted(each.name for each in log.path.parent.iterdir()) == ["actions.1.jsonl", "actions.jsonl"]
    assert all(0 < path.stat().st_size <= 2_000 for path in (log.path, log.aside))
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    assert lines(log)[-1]["action"] == "complete"


def test_what_was_removed_is_not_kept_for_ever(log: ActionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    source = QueueSource()
    log.note(source.info, *removal(source))
    old = log.path.read_text("utf-8").replace(lines(log)[0]["at"], "2020-01-01T00:00:00Z")
    log.path.write_text(old, "utf-8")

    log.note(source.info, Sweep(), Result())
    assert [line["action"] for line in lines(log)] == ["sweep"]
    assert "hunter2" in log.aside.read_text("utf-8")

    long_ago = log.aside.stat().st_mtime - 31 * 24 * 3600
    os.utime(log.aside, (long_ago, long_ago))
    log.note(source.info, Sweep(), Result())
    assert not log.aside.exists()
    assert len(lines(log)) == 2


def test_a_console_that_starts_deletes_what_is_too_old(tmp_path: Path) -> None:
    path = tmp_path / "actions.jsonl"
    path.write_text('{"at":"2020-01-01T00:00:00Z","deleted":"hunter2"}\n')
    os.utime(path, (0, 0))

    async def scenario(console: Console) -> None:
        assert not path.exists()

    run(scenario, action_log=path)


@pytest.mark.parametrize("first", ["", "no JSON\n", '{"at":"yesterday"}\n', '{"at":"2026-01-01"}\n', '{"at":1}\n'])
def test_a_first_line_of_another_process_stops_nothing(log: ActionLog, first: str) -> None:
    log.path.parent.mkdir(parents=True)
    log.path.write_text(first)

    log.note(TARGET, Sweep(), Result())

    assert '"action":"sweep"' in log.path.read_text("utf-8")


def test_consoles_that_write_at_the_same_time_lose_nothing(log: ActionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gw_tui.actions.log.MAX_BYTES", 12_000)
    target = TARGET

    def write(name: int) -> None:
        for number in range(20):
            log.note(target, Unlock(workers=(f"{name}-{number}",)), Result())

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    both = (
        [*log.aside.read_text("utf-8").splitlines(), *lines_of(log.path)] if log.aside.exists() else lines_of(log.path)
    )
    assert len(both) == 80


def lines_of(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    ("payloads", "name", "payload"),
    [
        (Payloads.WHOLE, "job", {"user": "me", "token": "hunter2"}),
        (Payloads.MASKED, "masked_job", {"user": "me", "token": "••••••••"}),
        (Payloads.NONE, "job_without_payload", None),
    ],
    ids=str,
)
def test_payloads_are_written_down_as_was_chosen(tmp_path: Path, payloads: Payloads, name: str, payload: Any) -> None:
    log = ActionLog(tmp_path / "actions.jsonl", payloads)
    source = QueueSource()
    log.note(source.info, *removal(source))
    log.note(source.info, Add(spec=JobSpec(task="mail"), payload=SECRET), Result())

    removed, added = lines(log)
    assert list(removed["deleted"][0]) == ["id", name]
    assert removed["deleted"][0][name].get("payload") == payload
    assert added["job"].get("payload") == payload
    assert ("hunter2" in log.path.read_text("utf-8")) is (payloads is Payloads.WHOLE)


@pytest.fixture
def options_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Options]:
    """Return what returns the options with which `gw tui` starts the console."""
    chosen: list[Options] = []
    program = CliProgram(capsys, monkeypatch)

    def start(*arguments: str) -> Options:
        program("tui", *arguments)
        return chosen.pop()

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("gw_tui.main.run", lambda _, options: chosen.append(options) or 0)
    monkeypatch.setattr("gw_cli.commands.tui._without_screen", lambda: None)
    return start


@pytest.mark.parametrize(
    ("arguments", "payloads"),
    [
        ([], "whole"),
        (["--log-payloads", "masked"], "masked"),
        (["--no-payload"], "none"),
        (["--no-payload", "--log-payloads", "whole"], "none"),
    ],
    ids=str,
)
def test_the_console_takes_the_choice(arguments: list[str], payloads: str, options_of: Callable[..., Options]) -> None:
    assert options_of("--demo", *arguments).log_payloads == payloads


def test_the_file_is_where_state_is_kept(
    options_of: Callable[..., Options], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    database = ("--connection", "postgres://nowhere/shop")

    assert options_of(*database).action_log == tmp_path / "gw" / "actions.jsonl"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert options_of(*database).action_log == Path("~/.local/state/gw/actions.jsonl").expanduser()
