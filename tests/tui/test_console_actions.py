"""Every action of the console by its keys: the confirmation, the effect, and the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from console_fixture import STILL, Console, run
from support.console_source import QueueSource
from textual.widgets import Button, Input, TextArea

from gw_core import JobSpec, JobState
from gw_core.errors import DatabaseUnavailableError
from gw_core.front_ends import CleanupTarget
from gw_tui.actions import (
    Action,
    Add,
    Cancel,
    Cleanup,
    Complete,
    Fail,
    Forget,
    Pause,
    Reschedule,
    Result,
    Resume,
    Retry,
    RunDoctor,
    SetLimit,
    Sweep,
    Unlock,
)

FAILED = "state:failed"


async def mark(console: Console, count: int) -> list[int]:
    """Mark the first rows, and return their ids."""
    screen = await console.jobs()
    for _ in range(count):
        await console.press("m")
    return [each.job.id for each in screen.targets()]


def ids(action: Action) -> list[int]:
    assert isinstance(action, Retry | Reschedule | Fail | Complete)
    return [each.id for each in action.jobs]


# -- retry -----------------------------------------------------------------------------------------------------------


def test_one_job_is_retried_without_a_question() -> None:
    async def scenario(console: Console) -> None:
        screen = await console.jobs()
        (target,) = screen.targets()
        await console.press("r")
        (action,) = await console.acted()
        assert isinstance(action, Retry)
        assert ids(action) == [target.job.id]
        job = console.source.queue.by_id[target.job.id]
        assert job.attempts == 0
        await console.notified(f"job {job.id} retried")
        await console.press("7")
        await console.shows("1 job retried")

    run(scenario, filter=FAILED)


def test_in_production_one_job_is_asked_about_too() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        await console.press("r")
        await console.reach("Confirm")
        await console.press("escape")
        await console.jobs()
        assert console.source.actions == []

    run(scenario, filter=FAILED, environment="production")


def test_several_jobs_are_named_cancel_has_the_focus_and_enter_does_nothing() -> None:
    async def scenario(console: Console) -> None:
        marked = await mark(console, 3)
        await console.press("x")
        dialog = await console.reach("Confirm")
        for job_id in marked:
            assert f" {job_id} " in console.text
        assert dialog.focused is dialog.query_one("#cancel")
        await console.press("enter")
        await console.jobs()
        assert console.source.actions == []
        assert console.table("#jobs").marks == {str(each) for each in marked}

    run(scenario, filter=FAILED)


def test_marks_are_taken_from_jobs_that_were_changed_and_stay_on_those_left_alone() -> None:
    async def scenario(console: Console) -> None:
        marked = await mark(console, 3)
        await console.press("r")
        await console.reach("Confirm")
        console.source.queue.change(marked[1], revision="=revision + 1")
        await console.press("enter")
        await console.acted()
        await console.reach("ResultDialog")
        assert "2 jobs retried, 1 skipped" in console.text
        assert f"{marked[1]}" in console.text
        await console.press("escape")
        await console.jobs()
        assert console.table("#jobs").marks == {str(marked[1])}

    run(scenario, filter=FAILED)


def test_a_job_that_has_not_failed_is_left_alone_and_the_key_that_runs_it_is_named() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        await console.press("r")
        await console.reach("ResultDialog")
        assert "0 jobs retried, 1 skipped" in console.text
        assert "not failed; t reschedules it" in console.text

    run(scenario, filter="state:scheduled")


# -- what cannot be taken back ---------------------------------------------------------------------------------------


def test_a_removed_job_comes_back_with_everything_but_its_id() -> None:
    async def scenario(console: Console) -> None:
        screen = await console.jobs()
        (target,) = screen.targets()
        known = set(console.source.queue.by_id)
        before = console.source.queue.by_id[target.job.id]
        await console.press("x")
        await console.reach("Confirm")
        await console.press("right", "enter")
        await console.acted()
        assert before.id not in console.source.queue.by_id
        await console.notified("U restores it")
        await console.press("U")
        await console.notified("1 job restored, with new ids: ")
        (restored,) = [each for each in console.source.queue.by_id.values() if each.id not in known]
        for name in ("task", "priority", "payload_json"):
            assert getattr(restored, name) == getattr(before, name)
        await console.press("U")
        await console.shows("Nothing to restore")

    run(scenario, filter="state:scheduled")


def test_many_jobs_are_destroyed_only_when_their_number_is_typed() -> None:
    source = QueueSource(jobs=600)

    async def scenario(console: Console) -> None:
        screen = await console.jobs()
        await console.press("ctrl+a")
        await console.until(lambda: len(console.table("#jobs").marks) > 100)
        number = len(screen.targets())
        await console.press("x")
        dialog = await console.reach("Confirm")
        await console.type("7")
        await console.press("enter")
        await console.shows(f"Type {number} exactly")
        assert source.actions == []
        dialog.query_one("#typed", Input).value = str(number)
        await console.press("tab", "enter")
        await console.acted()
        assert sum(len(ids(each)) for each in source.actions) == number

    run(scenario, source=source, filter="state:scheduled")


def test_a_running_job_is_left_to_its_worker() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        for key in ("r", "t", "f", "x"):
            await console.press(key)
            await console.shows("Running jobs cannot be")
        assert console.source.actions == []

    run(scenario, filter="state:running")


# -- long actions ----------------------------------------------------------------------------------------------------


def test_a_long_act_is_done_in_batches_and_stops_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Action, "BATCH_SIZE", 20)
    source = QueueSource()

    async def scenario(console: Console) -> None:
        await console.jobs()
        await console.press("ctrl+a")
        await console.until(lambda: len(console.table("#jobs").marks) > 60)
        number = len(console.table("#jobs").marks)
        await console.press("t")
        await console.reach("RescheduleDialog")
        await console.type("+1h")
        before = {each.id: each.run_at for each in source.queue.by_id.values()}
        source.hold()
        await console.press("enter")
        await console.reach("ProgressDialog")
        await console.press("escape")
        source.release()
        await console.reach("ResultDialog")
        assert f"20 jobs rescheduled; stopped, {number - 20} not processed" in console.text
        assert [source.queue.by_id[each].run_at == at for each, at in before.items()].count(False) == 20
        await console.press("escape")
        await console.jobs()
        assert len(console.table("#jobs").marks) == number - 20

    run(scenario, source=source, filter="state:scheduled")


async def complete_all(console: Console) -> int:
    """Complete every listed job, and return how many there were."""
    await console.jobs()
    await console.press("ctrl+a")
    await console.until(lambda: len(console.table("#jobs").marks) > 60)
    number = len(console.table("#jobs").marks)
    await console.press("x")
    await console.reach("Confirm")
    await console.type(str(number))
    await console.press("enter")
    await console.acted()
    return number


def test_a_restore_that_is_stopped_keeps_the_rest_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Action, "BATCH_SIZE", 20)
    source = QueueSource()

    async def scenario(console: Console) -> None:
        everything = len(source.queue.by_id)
        number = await complete_all(console)
        assert len(source.queue.by_id) == everything - number
        source.hold()
        await console.press("U")
        await console.reach("ProgressDialog")
        await console.press("escape")
        source.release()
        await console.reach("ResultDialog")
        assert "20 jobs restored" in console.text
        assert f"{number - 20} not restored" in console.text
        assert "U continues" in console.text
        assert len(source.queue.by_id) == everything - number + 20
        await console.press("escape")
        await console.press("U")
        await console.notified(f"{number - 20} jobs restored")
        assert len(source.queue.by_id) == everything
        await console.press("U")
        await console.notified("Nothing to restore")
        assert len(source.queue.by_id) == everything

    run(scenario, source=source, filter="state:scheduled")


# -- reschedule ------------------------------------------------------------------------------------------------------


def test_a_job_is_given_another_time_in_the_words_of_the_command_line() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        await console.press("t")
        dialog = await console.reach("RescheduleDialog")
        await console.type("sometime")
        await console.press("enter")
        assert console.source.actions == []
        assert console.is_on("RescheduleDialog")
        dialog.query_one("#run_at", Input).value = "+2h"
        dialog.query_one("#priority", Input).value = "-5"
        await console.shows("in 2h")
        await console.press("enter")
        (action,) = await console.acted()
        assert isinstance(action, Reschedule)
        job = console.source.queue.by_id[ids(action)[0]]
        assert job.priority == -5
        assert job.run_at.timestamp() == pytest.approx(console.source.clock().timestamp() + 7_200, abs=30)

    run(scenario, filter=FAILED)


WRONG_VALUES = (
    ("priority", "high", "must be a whole number"),
    ("priority", "99999", "must be from -32768 to 32767"),
    ("max_attempts", "0", "must be from 1"),
    ("run_at", "", "Fill in at least one field"),
)


def test_a_wrong_value_gets_a_sentence_and_the_dialog_stays() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        await console.press("t")
        dialog = await console.reach("RescheduleDialog")
        for field, text, complaint in WRONG_VALUES:
            dialog.query_one(f"#{field}", Input).value = text
            await console.press("enter")
            await console.shows(complaint)
            assert console.is_on("RescheduleDialog")
            dialog.query_one(f"#{field}", Input).value = ""
        assert console.source.actions == []

    run(scenario, filter=FAILED)


# -- add and run now -------------------------------------------------------------------------------------------------


def test_a_job_is_added_with_everything_that_can_be_said_of_it() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        await console.press("a")
        dialog = await console.reach("AddDialog")
        given = {
            "task": "mail",
            "queue_name": "q",
            "priority": "3",
            "max_attempts": "5",
            "job_key": "k",
            "flags": "a,b",
        }
        for name, text in given.items():
            dialog.query_one(f"#{name}", Input).value = text
        area = dialog.query_one("#payload", TextArea)
        area.load_text("{not json")
        dialog.query_one("#ok", Button).press()
        await console.shows("Payload is not valid JSON")
        area.load_text('{"n": 90071992547409931}')
        dialog.query_one("#ok", Button).press()
        (action,) = await console.acted()
        assert isinstance(action, Add)
        assert action.payload == '{"n": 90071992547409931}'
        assert (action.spec.task, action.spec.queue_name, action.spec.priority) == ("mail", "q", 3)
        assert (action.spec.max_attempts, action.spec.job_key, tuple(action.spec.flags or ())) == (5, "k", ("a", "b"))
        await console.notified("added")

    run(scenario)


def test_a_run_of_a_recurring_task_can_be_had_now() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table().keys)
        await console.press("t")
        await console.reach("Confirm")
        await console.press("enter")
        (action,) = await console.acted()
        assert isinstance(action, Add)

    run(scenario, screen="cron")


# -- workers ---------------------------------------------------------------------------------------------------------


async def to_worker(console: Console, *, is_stale: bool) -> str:
    """Put the cursor on a worker."""
    await console.until(lambda: console.table("#workers").keys)
    (worker_id, *_) = [
        each.id for each in console.source.snapshot().workers if each.is_stale is is_stale and each.has_heartbeat
    ]
    console.table("#workers").move_to(worker_id)
    await console.pilot.pause()
    return worker_id


def test_a_worker_that_sends_heartbeats_is_unlocked_only_when_its_id_is_typed() -> None:
    async def scenario(console: Console) -> None:
        worker_id = await to_worker(console, is_stale=False)
        await console.press("u")
        await console.reach("Confirm")
        assert "MAY BE ALIVE: last heartbeat 3.0s ago, presumed dead after 5m00s" in console.text
        assert "run twice" in console.text
        await console.press("enter")
        await console.shows("exactly")
        assert console.source.actions == []
        await console.type(worker_id)
        await console.press("enter")
        (action,) = await console.acted()
        assert action == Unlock(workers=(worker_id,))

    run(scenario, screen="workers")


def test_a_dead_worker_is_unlocked_after_a_plain_question() -> None:
    async def scenario(console: Console) -> None:
        worker_id = await to_worker(console, is_stale=True)
        await console.press("u")
        await console.reach("Confirm")
        assert "Last heartbeat 9m04s ago: presumed dead." in console.text
        await console.press("enter")
        (action,) = await console.acted()
        assert action == Unlock(workers=(worker_id,))
        assert not [each for each in console.source.queue.by_id.values() if each.locked_by == worker_id]

    run(scenario, screen="workers")


def test_a_sweep_shows_first_what_it_would_do() -> None:
    async def scenario(console: Console) -> None:
        dead = await to_worker(console, is_stale=True)
        await console.press("S")
        await console.reach("Confirm")
        assert console.source.actions == [Sweep(dry_run=True)]
        assert dead[:20] in console.text
        await console.press("right", "enter")
        assert (await console.acted(2))[1:] == [Sweep()]

    run(scenario, screen="workers")


def test_a_running_job_is_cancelled_after_a_question() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        (job_id,) = (int(console.table("#jobs").highlighted or 0),)
        await console.press("c")
        await console.reach("Confirm")
        assert "are not" in console.text
        buttons = next(line for line in console.text.splitlines() if "Cancel job" in line and "Back" in line)
        assert buttons.count("Cancel") == 1
        await console.press("right", "enter")
        (action,) = await console.acted()
        assert isinstance(action, Cancel)
        assert action.ids == [job_id]

    run(scenario, filter="state:running")


# -- when nothing can be done ----------------------------------------------------------------------------------------


def test_an_open_question_waits_while_the_database_is_away() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        await console.press("x")
        dialog = await console.reach("Confirm")
        console.source.go_down(DatabaseUnavailableError("the server went away"))
        console.app.refresh_now()
        await console.until(lambda: dialog.query_one("#ok", Button).disabled)
        await console.shows("Waiting for the database")
        dialog.action_accept()
        assert console.app.screen is dialog
        console.source.come_back()
        console.app.refresh_now()
        await console.until(lambda: not dialog.query_one("#ok", Button).disabled)
        await console.press("right", "enter")
        await console.acted()

    run(scenario, filter=FAILED)


def test_acts_wait_while_the_database_is_away() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        console.source.go_down(DatabaseUnavailableError("the server went away"))
        console.app.refresh_now()
        await console.until(lambda: console.state.phase == "down")
        await console.press("x", "f", "t", "a")
        await console.pilot.pause()
        assert console.is_on("jobs")

    run(scenario, filter=FAILED)


def test_a_console_that_has_ended_draws_no_change_of_its_connection() -> None:
    consoles: list[Console] = []

    async def scenario(console: Console) -> None:
        consoles.append(console)

    run(scenario)
    [ended] = consoles
    ended.state.clock = lambda: STILL + 120
    assert ended.app.drawn_phase == "live"

    ended.tick()

    assert ended.app.drawn_phase == "stale"


def test_an_action_the_database_rejects_says_why() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()

        def reject(_: Action) -> Result:
            raise DatabaseUnavailableError("the server \x1b]52;c;evil\x07 went away")

        console.source.run = reject
        await console.press("r")
        await console.reach("ResultDialog")
        assert "went away" in console.text
        assert "0 jobs retried; 1 unknown" in console.text
        assert "\x1b" not in console.text
        assert any(entry.is_bad and "went away" in entry.words for entry in console.state.journal)

    run(scenario, filter=FAILED)


async def lose_the_answer(console: Console, action: Action) -> None:
    await console.jobs()

    def lose(_: Action) -> Result:
        raise DatabaseUnavailableError("the server went away")

    console.source.run = lose
    console.app.action_runner.begin(action)  # type: ignore[attr-defined]
    await console.reach("ResultDialog")


@pytest.mark.parametrize(
    "action",
    [
        Add(spec=JobSpec(task="mail")),
        Cleanup(target=CleanupTarget.UNUSED_TASKS),
        Forget(identifier="nightly"),
        Pause(target="task:mail"),
        Resume(target="task:mail"),
        SetLimit(task="mail", running=4),
        Sweep(),
        Unlock(workers=["gw-1"]),
    ],
    ids=lambda action: type(action).__name__,
)
def test_an_action_whose_answer_was_lost_may_be_done(action: Action) -> None:
    async def scenario(console: Console) -> None:
        await lose_the_answer(console, action)
        await console.shows("the last change may be done, check before you repeat it")
        assert "went away" in console.text
        assert f"0 {action.thing}" not in console.text

    run(scenario, filter=FAILED)


def test_a_reading_that_fails_shows_why_and_counts_nothing() -> None:
    async def scenario(console: Console) -> None:
        await lose_the_answer(console, RunDoctor())
        await console.shows("went away")
        assert "0 jobs" not in console.text

    run(scenario, filter=FAILED)


# -- copies ----------------------------------------------------------------------------------------------------------


def test_the_command_of_an_action_is_copied() -> None:
    async def scenario(console: Console) -> None:
        marked = await mark(console, 2)
        await console.press("Y")
        await console.choices()
        await console.press("enter")
        await console.until(lambda: console.app.clipboard)
        assert "gw retry {} {}".format(*marked) in console.app.clipboard
        assert console.app.clipboard.isprintable()

    run(scenario, filter=FAILED)


def test_hostile_names_reach_no_dialog() -> None:
    source = QueueSource()
    job = source.queue.insert("a\x1b]52;c;evil\x07[red]\u202eb")

    async def scenario(console: Console) -> None:
        await console.jobs()
        await console.press("x")
        await console.reach("Confirm")
        assert "[red]" in console.text
        assert "\x1b" not in console.text
        assert "\u202e" not in console.text

    run(scenario, source=source, filter=f"id:{job}")


def test_no_more_jobs_are_marked_together_than_was_said() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        await console.press("ctrl+a")
        await console.until(lambda: len(console.table("#jobs").marks) == 7)
        await console.notified("more match")

    run(scenario, filter="state:scheduled", max_marked=7)


def test_a_cleanup_is_narrowed_by_task_and_age_and_records_what_it_deletes(tmp_path: Path) -> None:
    source = QueueSource(jobs=600)
    failed = [each.job for each in source.queue.states() if each.state is JobState.FAILED]
    task = failed[0].task
    old = source.queue.alter(failed[0], _created_at=source.queue.now.timestamp() - 8 * 86_400)

    async def scenario(console: Console) -> None:
        await console.rows()
        await console.press("C")
        await console.choices()
        await console.press("down", "down", "enter")  # the harmless choices come first
        dialog = await console.reach("NarrowDialog")
        dialog.query_one("#task", Input).value = task
        dialog.query_one("#age", Input).value = "soon"
        await console.press("enter")
        await console.shows("not a duration")
        dialog.query_one("#age", Input).value = "7d"
        await console.press("enter")
        await console.reach("Confirm")
        assert "1 failed job" in console.text
        await console.press("enter")
        await console.shows("exactly")
        await console.type("1")
        await console.press("enter")
        await console.acted(2)
        left = {each.job.id for each in console.source.queue.states() if each.state is JobState.FAILED}
        assert {each.id for each in failed} - left == {old.id}
        (line,) = (tmp_path / "actions.jsonl").read_text().splitlines()
        record = json.loads(line)
        assert [each["id"] for each in record["deleted"]] == [old.id]
        assert record["selection"].startswith("state:failed task:")

    run(scenario, source=source, screen="locks", action_log=tmp_path / "actions.jsonl")


@pytest.mark.parametrize("environment", ["", "production"])
def test_failing_many_jobs_needs_their_number_only_in_production(environment: str) -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        await console.press("ctrl+a")
        await console.until(lambda: len(console.table("#jobs").marks) > 100)
        await console.press("f")
        await console.reach("Confirm")
        await console.press("tab", "enter") if not environment else await console.press("enter")
        if environment:
            await console.shows("exactly")
        else:
            await console.acted(1)

    run(scenario, source=QueueSource(jobs=600), filter="state:scheduled", environment=environment)
