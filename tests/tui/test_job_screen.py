"""One job: its payload exact and masked, its attempts projected, and what became of it."""

from __future__ import annotations

from typing import Any

import pytest
from console_fixture import Console, of_all, run
from support.console_source import QueueSource

from gw_core import Client, Job, JobSpec, JobState


def a_job(source: Any, state: JobState, **changes: object) -> Job:
    job = next(each.job for each in source.queue.states() if each.state is state)
    return source.queue.alter(job, **changes)


async def opened(console: Console) -> Any:
    await console.until(lambda: console.table().keys)
    await console.press("enter")
    screen = await console.reach("job")
    await console.until(lambda: screen.report is not None)
    await console.pilot.pause()
    return screen


def test_a_secret_in_the_payload_is_masked_until_v() -> None:
    source = QueueSource()
    payload = '{"n": 12345678901234567890123, "token": "s3cr3t", "text": "hi"}'
    job = a_job(source, JobState.READY, payload=payload)

    async def scenario(console: Console) -> None:
        await opened(console)
        assert "12345678901234567890123" in console.text
        assert "s3cr3t" not in console.text
        await console.press("v")
        await console.shows("s3cr3t")
        await console.press("y")
        assert "s3cr3t" in console.app.clipboard
        await console.press("v", "y")
        assert "s3cr3t" not in console.app.clipboard

    run(scenario, source=source, filter=f"id:{job.id}")


def test_a_batch_says_how_many_items_it_has() -> None:
    source = QueueSource()
    job = a_job(source, JobState.READY, payload="[1, 2, 3]")

    async def scenario(console: Console) -> None:
        await opened(console)
        assert "batch of 3 items" in console.text

    run(scenario, source=source, filter=f"id:{job.id}")


def test_attempts_are_inferred_and_projected_and_the_next_is_marked() -> None:
    source = QueueSource()
    job = a_job(source, JobState.BACKOFF, attempts=3, max_attempts=5)

    async def scenario(console: Console) -> None:
        await opened(console)
        assert "attempt 3 of 5" in console.text
        assert "≈ inferred" in console.text
        assert any("→" in line and "due" in line for line in console.text.splitlines())
        assert "earliest, last" in console.text

    run(scenario, source=source, filter=f"id:{job.id}", size=(120, 34))


def test_a_job_that_goes_away_while_it_is_shown_stays_as_it_was_last_seen() -> None:
    source = QueueSource()
    job = a_job(source, JobState.READY)

    async def scenario(console: Console) -> None:
        screen = await opened(console)
        source.queue.delete(job.id)
        await console.refresh()
        await console.shows("gone by")
        assert job.task in console.text
        assert not screen.targets()

    run(scenario, source=source, filter=f"id:{job.id}")


def test_a_job_that_was_gone_before_it_was_shown_has_no_empty_boxes() -> None:
    source = QueueSource()
    job = a_job(source, JobState.READY)

    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table().keys)
        source.queue.delete(job.id)
        await console.press("enter")
        screen = await console.reach("job")
        await console.shows("no such job")
        await console.until(lambda: not screen.query_one("#payload").display)
        assert not any(screen.query_one(f"#{name}").display for name in ("error", "attempts", "related"))

    run(scenario, source=source, filter=f"id:{job.id}")


def test_brackets_go_through_the_list_and_the_cursor_goes_along() -> None:
    async def scenario(console: Console) -> None:
        screen = await opened(console)
        keys = console.app.screen_stack[-2].query_one("#jobs").keys  # type: ignore[attr-defined]
        await console.press("right_square_bracket", "right_square_bracket", "left_square_bracket")
        await console.until(lambda: screen.report is not None and str(screen.report.job.id) == keys[1])
        await console.press("left_square_bracket", "left_square_bracket")
        await console.shows("End of list")
        await console.press("right_square_bracket", "escape")
        await console.reach("jobs")
        assert console.table().highlighted == keys[1]

    run(scenario)


def test_payloads_are_not_shown_where_that_was_asked_for() -> None:
    async def scenario(console: Console) -> None:
        await opened(console)
        await console.press("y")
        assert "Payloads are disabled" in console.text
        assert not console.app.clipboard

    run(scenario, show_payload=False)


def test_ages_go_on_by_themselves() -> None:
    source = QueueSource()
    clock = source.clock

    async def scenario(console: Console) -> None:
        await opened(console)
        assert "created" in console.text
        before = next(line for line in console.text.splitlines() if "created" in line)
        clock.advance(5)
        await console.refresh()
        await console.until(lambda: before not in console.text)

    run(scenario, source=source, filter="state:scheduled")


def test_a_long_error_can_be_scrolled_zoomed_and_copied_and_has_the_width_of_the_terminal() -> None:
    source = QueueSource()
    error = "\n".join(f"line {number} of a traceback that is {'quite ' * 6}long" for number in range(40))
    job = a_job(source, JobState.FAILED, last_error=error)

    async def scenario(console: Console) -> None:
        screen = await opened(console)
        panel = screen.query_one("#error")
        assert panel.size.width > 70
        panel.focus()
        await console.press("j", "j")
        await console.until(lambda: panel.scroll_offset.y == 2)
        await console.press("G")
        await console.shows("line 39 of")
        await console.press("g")
        await console.shows("line 0 of")
        await console.press("y")
        assert console.app.clipboard.startswith("line 0 of")
        assert "line 39 of" in console.app.clipboard
        before = panel.size.height
        await console.press("z")
        await console.until(lambda: panel.size.height > before)

    run(scenario, source=source, filter=f"id:{job.id}")


def test_the_help_of_the_job_screen_is_about_one_job() -> None:
    source = QueueSource()
    job = a_job(source, JobState.READY)

    async def scenario(console: Console) -> None:
        await opened(console)
        await console.press("?")
        await console.shows("Help: Job ")

    run(scenario, source=source, filter=f"id:{job.id}")


@pytest.mark.parametrize("size", of_all((80, 24), others=((120, 34), (160, 45))), ids=str)
def test_the_steps_of_a_job_and_what_waits_for_it_are_one_key_away_at_most(size: tuple[int, int]) -> None:
    source = QueueSource()
    job = a_job(source, JobState.BACKOFF, attempts=24, last_error="\n".join(f"line {n}" for n in range(40)))
    source.queue.run(
        "insert into _private_gw_steps (job_id, name, value, finished, attempt, job_created_at)"
        " select id, 'charge', '1', true, 2, created_at from _private_jobs where id = %s",
        job.id,
    )
    with Client(source.queue.url, schema=source.queue.schema) as client:
        client.add(JobSpec(task="mail", after=[job.id]))

    async def scenario(console: Console) -> None:
        await opened(console)
        if console.app.size.width < 110:
            await console.press("G")
        await console.shows("attempt 2 finished charge")
        await console.shows("of mail waits for 1 job")

    run(scenario, source=source, filter=f"id:{job.id}", size=size)


@pytest.mark.parametrize("failed", [False, True], ids=["waiting", "failed by an operator"])
def test_a_job_that_waits_for_others_has_no_time(failed: bool) -> None:
    source = QueueSource()
    with Client(source.queue.url, schema=source.queue.schema) as client:
        job = client.add(JobSpec(task="mail", after=[a_job(source, JobState.BACKOFF, attempts=3).id]))
        if failed:
            client.jobs.fail([job.id])

    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table().keys)
        assert [row.cells["run_at"].text for row in console.table().shown_rows.values()] == ["\N{EN DASH}"]
        assert "9999" not in console.text
        await opened(console)
        await console.shows("failed permanently" if failed else "waits for 1 job")
        assert "9999" not in console.text

    run(scenario, source=source, filter=f"id:{job.id}", size=(160, 45))
