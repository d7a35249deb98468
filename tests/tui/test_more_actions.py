"""Actions by key, on recurring tasks and for maintenance, and the commands they are equivalent to."""

from __future__ import annotations

from typing import Any

from console_fixture import Console, Preferences, run
from support.console_queue import ALIVE
from support.console_source import QueueSource
from textual.widgets import Button, Input, TextArea

from gw_core.front_ends import CleanupTarget
from gw_tui.actions import Cleanup, FindByKey, Forget, Pause, Resume, Sweep


def keyed(source: Any, *, running: bool) -> tuple[int, str]:
    """Return a job with a key, in the requested state."""
    job = next(each for each in source.queue.by_id.values() if each.job_key and each.locked_by is None)
    if running:
        locked = {"locked_by": ALIVE[0], "_locked_at": source.queue.now.timestamp(), "attempts": 1}
        job = source.queue.alter(job, **locked)
    assert job.job_key is not None
    return job.id, job.job_key


# -- by key ------------------------------------------------------------------------------------------------------------


async def ask_for(console: Console, key: str) -> None:
    await console.rows()
    await console.press("K")
    dialog = await console.reach("KeyDialog")
    dialog.query_one("#key", Input).value = key
    await console.press("enter")


def test_a_job_that_waits_is_removed_by_its_key_and_comes_back() -> None:
    source = QueueSource()
    job_id, key = keyed(source, running=False)

    async def scenario(console: Console) -> None:
        await ask_for(console, key)
        dialog = await console.reach("Confirm")
        assert f"{job_id}" in console.text
        assert "U restores it" in console.text
        assert dialog.focused is dialog.query_one("#cancel")
        await console.press("right", "enter")
        await console.notified(f"job {job_id} removed · U restores it")
        assert job_id not in source.queue.by_id
        await console.reach("jobs")
        await console.press("7", "U")  # also from the events
        await console.until(lambda: any(each.job_key == key for each in source.queue.by_id.values()))

    run(scenario, source=source)


def test_of_a_running_job_it_is_said_before_and_after_that_it_goes_on() -> None:
    source = QueueSource()
    job_id, key = keyed(source, running=True)

    async def scenario(console: Console) -> None:
        await ask_for(console, key)
        await console.reach("Confirm")
        assert "is not retried" in console.text
        assert "cannot be undone" in console.text
        await console.press("right", "enter")
        await console.notified(f"job {job_id} is running: it lost its key")
        job = source.queue.by_id[job_id]
        assert (job.job_key, job.attempts) == (None, job.max_attempts)
        assert not any("U restores it" in each for each in console.notices)

    run(scenario, source=source)


def test_a_job_that_changed_between_the_question_and_the_answer_is_left_alone() -> None:
    source = QueueSource()
    job_id, key = keyed(source, running=False)

    async def scenario(console: Console) -> None:
        await ask_for(console, key)
        await console.reach("Confirm")
        source.queue.alter(source.queue.by_id[job_id], revision=9)
        await console.press("right", "enter")
        await console.reach("ResultDialog")
        assert "1 skipped" in console.text
        assert "revision 0→9" in console.text
        assert source.queue.by_id[job_id].job_key == key

    run(scenario, source=source)


def test_the_key_of_the_job_under_the_cursor_is_offered_and_one_that_no_job_has_is_reported() -> None:
    source = QueueSource()
    _, key = keyed(source, running=False)

    async def scenario(console: Console) -> None:
        await console.rows()
        await console.press("K")
        dialog = await console.reach("KeyDialog")
        entry = dialog.query_one("#key", Input)
        assert entry.value == key
        await console.press("o", "t", "h", "e", "r")  # typing replaces what was offered
        assert entry.value == "other"
        await console.press("enter")
        await console.notified("No job has the key 'other'")
        assert console.source.actions == [FindByKey(key="other")]

    run(scenario, source=source, filter=f"job_key:{key}")


# -- recurring tasks ---------------------------------------------------------------------------------------------------


def test_a_recurring_task_is_forgotten_after_a_question() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        console.table().move_to("retired_task")
        await console.press("x")
        dialog = await console.reach("Confirm")
        assert "Forget retired_task?" in console.text
        assert dialog.focused is dialog.query_one("#cancel")
        await console.press("right", "enter")
        assert await console.acted(1) == [Forget(identifier="retired_task")]
        await console.notified("recurring task retired_task forgotten")
        await console.until(
            lambda: "retired_task" not in console.table().keys or console.table().is_gone("retired_task")
        )

    run(scenario, screen="cron")


# -- keeping the queue in order ----------------------------------------------------------------------------------------


def test_the_command_line_offers_maintenance_on_every_screen() -> None:
    async def scenario(console: Console) -> None:
        for screen in ("overview", "jobs", "events"):
            console.app.visit(screen)
            await console.reach(screen)
            names = ("sweep_now", "cleanup_failed_jobs", "cleanup_unused_tasks", "cleanup_unused_queues", "run_doctor")
            assert {each: console.app.check_action(each, ()) for each in names} == dict.fromkeys(names, True)
            await console.press("ctrl+p")
            await console.reach("CommandLine")
            await console.press(*"unused")
            await console.shows("Clean up unused queues")
            await console.press("escape")

    run(scenario, screen="overview")


def test_maintenance_by_name_shows_first_what_it_would_do_and_asks_only_where_something_is_to_be_done() -> None:
    async def scenario(console: Console) -> None:
        for name in ("cleanup_unused_tasks", "cleanup_unused_queues"):
            console.notices.clear()
            await console.app.run_action(name)
            await console.notified("Nothing to clean up")
        assert len(console.source.actions) == 2
        await console.app.run_action("sweep_now")
        await console.reach("Confirm")
        assert "last heartbeat 9m04s ago" in console.text
        await console.press("right", "enter")
        assert (await console.acted(4))[2:] == [Sweep(dry_run=True), Sweep()]

    run(scenario, screen="overview")


def test_failed_jobs_are_counted_before_anybody_is_asked() -> None:
    async def scenario(console: Console) -> None:
        count = sum(job.attempts >= job.max_attempts for job in console.source.queue.by_id.values())
        await console.app.run_action("cleanup_failed_jobs")
        await console.reach("NarrowDialog")
        await console.press("enter")
        await console.reach("Confirm")
        assert f"{count} failed jobs." in console.text
        assert "cannot be undone" in console.text
        await console.type(str(count))
        await console.press("enter")
        await console.notified(f"{count} failed jobs deleted")
        dry, done = await console.acted(2)
        assert dry == Cleanup(target=CleanupTarget.FAILED_JOBS, dry_run=True)
        assert done == Cleanup(target=CleanupTarget.FAILED_JOBS)

    run(scenario, screen="overview")


def test_the_doctor_can_be_asked_now_also_by_a_key_of_ones_own() -> None:
    async def scenario(console: Console) -> None:
        await console.press("X")
        await console.until(lambda: console.is_on("locks"))
        await console.notified("Doctor: 1 error, 1 warning")

    run(scenario, screen="overview", preferences=Preferences(keys={"run_doctor": "X"}))


# -- equivalent commands -----------------------------------------------------------------------------------------------


async def copied(console: Console, *keys: str) -> str:
    await console.press(*keys)
    await console.until(lambda: console.app.clipboard)
    return console.app.clipboard


OFFERED = (
    ("workers", "sweep", "gw sweep"),
    ("workers", "unlock", "gw unlock gw-app-3-977-760e1f"),
    ("cron", "forget", "gw cron forget nightly_cleanup"),
    ("cron", "run", "gw add"),
    ("locks", "sweep", "gw sweep"),
    ("locks", "unused-tasks", "gw cleanup unused-tasks"),
)


def test_what_a_screen_does_is_offered_as_a_command() -> None:
    async def scenario(console: Console) -> None:
        for screen, choice, command in OFFERED:
            console.app.visit(screen)
            await console.reach(screen)
            await console.rows()
            console.app.copy_to_clipboard("")
            await console.press("Y")
            (await console.reach("Choose")).dismiss(choice)
            assert (await copied(console)).startswith(command)

    run(scenario, screen="workers")


def test_the_holder_of_a_queue_is_offered_to_be_unlocked_without_a_choice() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        console.table().move_to("imports")
        assert await copied(console, "Y") == "gw unlock gw-app-3-977-760e1f"

    run(scenario, screen="queues")


def test_what_is_under_the_cursor_is_paused_and_resumed() -> None:
    async def pause(console: Console, screen: str, kind: str) -> None:
        done = len(console.source.actions)
        console.app.visit(screen)
        await console.reach(screen)
        await console.rows()
        name = console.table().highlighted
        await console.press("P")
        dialog = await console.reach("Confirm")
        dialog.query_one("#typed", Input).value = "provider down"
        dialog.query_one("#ok", Button).press()
        assert (await console.acted(done + 2))[-1] == Pause(target=f"{kind}:{name}", reason="provider down")
        await console.until(lambda: "paused" in console.text)
        await console.until(lambda: "provider down" in console.text)

        await console.press("P")
        (await console.reach("Confirm")).query_one("#ok", Button).press()
        assert (await console.acted(done + 4))[-1] == Resume(target=f"{kind}:{name}")
        await console.until(lambda: "provider down" not in console.text)

    async def scenario(console: Console) -> None:
        for screen, kind in (("queues", "queue"), ("tasks", "task"), ("cron", "cron")):
            await pause(console, screen, kind)

    run(scenario, screen="queues", size=(140, 34))


def test_a_question_and_a_form_copy_what_they_would_do_with_what_was_filled_in() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        (target,) = console.screen("jobs").targets()
        await console.press("f")
        dialog = await console.reach("Confirm")
        dialog.query_one("#typed", Input).value = "it's over"
        assert await copied(console, "ctrl+y") == f"gw fail {target.job.id} '--reason=it'\"'\"'s over'"
        await console.press("escape")
        await console.reach("jobs")
        console.app.copy_to_clipboard("")
        await console.press("t")
        dialog = await console.reach("RescheduleDialog")
        dialog.query_one("#priority", Input).value = "-5"
        assert await copied(console, "ctrl+y") == f"gw reschedule {target.job.id} --priority=-5"
        assert console.source.actions == []

    run(scenario, filter="state:scheduled")


def test_the_form_of_a_job_copies_the_job_or_says_what_is_wrong_with_it() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        await console.press("a")
        dialog = await console.reach("AddDialog")
        dialog.query_one("#task", Input).value = "mail"
        dialog.query_one("#payload", TextArea).load_text("{not json")
        await console.press("ctrl+y")
        await console.shows("Payload is not valid JSON")
        dialog.query_one("#payload", TextArea).load_text('{"n": 1}')
        assert await copied(console, "ctrl+y") == "gw add mail '--payload={\"n\": 1}'"
        assert dialog.query_one("#ok", Button).disabled is False

    run(scenario)


def test_what_an_entry_or_an_alert_says_is_copied() -> None:
    async def scenario(console: Console) -> None:
        await console.rows()
        assert "worker gw-app-3-977-760e1f is gone" in await copied(console, "y")
        console.app.copy_to_clipboard("")
        await console.press("7")
        await console.rows()
        assert "connection" in await copied(console, "y")

    run(scenario, screen="overview")
