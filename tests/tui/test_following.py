"""Following the newest jobs, exact counts of a queue, and payloads that are not fetched."""

from __future__ import annotations

from typing import Any

from console_fixture import Console, run
from msgspec.structs import replace
from support.console_source import QueueSource

from gw_core.front_ends import Count, Quality


def added(source: QueueSource) -> str:
    """Add a job from another session, and return its key in the list."""
    return str(source.queue.insert("mail"))


# -- following ---------------------------------------------------------------------------------------------------------


def test_the_newest_jobs_come_in_at_the_top_while_the_list_is_followed() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        await console.press("F")
        await console.shows("following")
        await console.until(lambda: console.table("#jobs").keys)
        new = added(console.source)
        await console.refresh()
        await console.until(lambda: console.table("#jobs").keys[0] == new)
        assert console.table("#jobs").scroll_offset.y == 0
        assert console.table("#jobs").waiting == 0

    run(scenario)


def test_no_row_is_under_the_cursor_while_the_list_is_followed() -> None:
    async def scenario(console: Console) -> None:
        screen = await console.jobs()
        await console.press("F")
        await console.until(lambda: console.table("#jobs").keys)
        assert console.table("#jobs").highlighted is None
        assert screen.targets() == ()
        await console.press("r", "x", "f", "m")
        await console.pilot.pause()
        assert console.source.actions == []
        assert console.app.screen is screen
        assert console.table("#jobs").marks == set()

    run(scenario)


def test_a_key_that_moves_ends_the_following_on_the_first_row() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        for key in ("F", "down", "k", "g"):
            await console.press("F")
            await console.shows("following")
            await console.until(lambda: console.table("#jobs").keys)
            await console.press(key)
            first = console.table("#jobs").keys[0]
            await console.until(lambda first=first: console.table("#jobs").highlighted == first)
            added(console.source)
            await console.refresh()
            assert console.table("#jobs").highlighted == first, key
            assert "following" not in console.text

    run(scenario)


def test_a_state_is_followed_in_the_order_it_has() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        before = console.table("#jobs").keys
        await console.press("F")
        await console.shows("following")
        await console.until(lambda: console.table("#jobs").keys)
        assert console.table("#jobs").keys == before

    run(scenario, filter="state:failed")


def test_marked_rows_keep_their_place_and_are_not_followed() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        await console.press("m", "F")
        await console.notified("esc clears the marks")
        assert len(console.table("#jobs").marks) == 1

    run(scenario)


def test_marking_ends_the_following() -> None:
    async def scenario(console: Console) -> None:
        await console.jobs()
        for key in ("A", "ctrl+a"):
            await console.press("F")
            await console.shows("following")
            await console.until(lambda: console.table("#jobs").keys)
            await console.press(key)
            await console.until(lambda: console.table("#jobs").marks)
            assert console.table("#jobs").highlighted is not None
            await console.press("escape")
            await console.until(lambda: not console.table("#jobs").marks)

    run(scenario)


# -- exact counts ------------------------------------------------------------------------------------------------------


def test_a_queue_is_counted_exactly_and_the_age_of_the_count_is_reported() -> None:
    source = QueueSource()
    do = source.run

    def counted(action: Any) -> Any:
        assert (type(action).__name__, action.queue) == ("CountExactly", "imports")
        return iter([replace(next(do(action)), queue=(Count(123_456), Count(120_000, Quality.EXACT)))])

    source.run = counted  # type: ignore[method-assign]

    async def scenario(console: Console) -> None:
        await console.until(lambda: "imports" in console.table().keys)
        console.table().move_to("imports")
        await console.press("=")
        await console.shows("imports: 123,456 unclaimed, 120,000 due, counted")
        assert "123k" in console.text

    run(scenario, source=source, screen="queues", size=(140, 34))


def test_the_holder_of_the_queue_under_the_cursor_says_when_it_last_sent_a_heartbeat() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: "imports" in console.table().keys)
        console.table().move_to("imports")
        await console.shows("heartbeat 9m")

    run(scenario, screen="queues")


# -- payloads ----------------------------------------------------------------------------------------------------------


class Nosy(QueueSource):
    """Notes whether a payload was ever asked for."""

    asked_for_payload = False

    def job(self, job_id: int, *, with_payload: bool = True):  # type: ignore[no-untyped-def]
        """Return everything about one job."""
        self.asked_for_payload |= with_payload
        return super().job(job_id, with_payload=with_payload)

    def page(self, *arguments, with_payload: bool = False, **more):  # type: ignore[no-untyped-def]
        """Return a page of jobs."""
        self.asked_for_payload |= with_payload
        return super().page(*arguments, with_payload=with_payload, **more)


def test_without_payloads_none_is_fetched_not_even_of_the_job_that_is_opened() -> None:
    source = Nosy()

    async def scenario(console: Console) -> None:
        await console.jobs()
        await console.press("enter")
        await console.shows("Payloads are disabled")
        await console.shows("attempt ")
        assert not source.asked_for_payload

    run(scenario, source=source, show_payload=False)


def test_without_payloads_a_filter_that_asks_for_them_is_rejected() -> None:
    source = Nosy()

    async def scenario(console: Console) -> None:
        await console.jobs()
        await console.press("slash")
        await console.type("payload.user.id:42")
        await console.press("enter")
        await console.notified("unavailable with --no-payload")
        assert not source.asked_for_payload

    run(scenario, source=source, show_payload=False)
