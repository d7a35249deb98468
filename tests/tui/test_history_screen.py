"""The history: ended attempts, the latest first, filtered by a selection."""

from __future__ import annotations

from console_fixture import Console, run
from support.console_source import QueueSource

from gw_core.operations import HistoryPage


class Paged(QueueSource):
    """A queue whose history comes in pages of three."""

    def history(self, which: str = "", *, after: str | None = None) -> HistoryPage:
        page, begin = super().history(which), int(after or 0)
        more = str(begin + 3) if len(page.attempts) > begin + 3 else None
        return HistoryPage(attempts=page.attempts[begin : begin + 3], after=more)


def states(console: Console) -> set[str]:
    table = console.table("#history")
    return {getattr(table.shown_rows[key].cells["state"], "text", "").split()[-1] for key in table.keys}


def test_ended_attempts_are_listed_with_their_state() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#history").keys)
        assert states(console) == {"completed", "retried", "failed"}

    run(scenario, screen="history", size=(120, 34))


def test_eighty_columns_show_the_error_rather_than_the_worker() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#history").keys)
        title = next(line for line in console.text.splitlines() if " ended " in line)
        assert "error" in title
        assert "worker" not in title, console.text

    run(scenario, screen="history")


def test_a_selection_filters_the_list_and_escape_clears_it() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#history").keys)
        await console.press("slash", *"state:failed", "enter")
        await console.until(lambda: states(console) == {"failed"})
        await console.press("escape")
        await console.until(lambda: "completed" in states(console))

    run(scenario, screen="history", size=(120, 34))


def test_a_condition_that_history_has_not_changes_nothing() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#history").keys)
        await console.press("slash", *"priority:3", "enter")
        await console.press("x")
        assert "completed" in states(console)

    run(scenario, screen="history", size=(120, 34))


def test_enter_shows_the_attempts_of_one_job() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#history").keys)
        first = console.table("#history").keys[0]
        await console.press("enter")
        await console.until(lambda: list(console.table("#history").keys) == [first])

    run(scenario, screen="history", size=(120, 34))


def test_pages_turn_and_a_filter_begins_at_the_first_one() -> None:
    async def scenario(console: Console) -> None:
        screen = console.screen("history")
        await console.until(lambda: console.table("#history").keys)
        first = console.table("#history").keys
        await console.press("n")
        await console.until(lambda: console.table("#history").keys and console.table("#history").keys[0] not in first)
        assert not set(console.table("#history").keys) & set(first)
        assert len(screen.begins) == 2
        await console.press("p")
        await console.until(lambda: console.table("#history").keys == first)
        await console.press("p")
        await console.notified("First page")
        await console.press("n", "slash", *"state:failed", "enter")
        await console.until(lambda: states(console) == {"failed"})
        assert screen.begins == (None,)

    run(scenario, source=Paged(), screen="history", size=(120, 34))
