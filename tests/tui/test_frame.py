"""The console as a whole: screens, keys, the state of the connection, and a screen that never waits."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from console_fixture import STILL, Console, Preferences, play, run
from support.console_source import QueueSource
from support.profiles import IS_NIGHTLY

from gw_core.errors import DatabaseUnavailableError
from gw_core.front_ends import AuthenticationError, StatementTimeoutError
from gw_tui.rules import connection_state
from gw_tui.rules.commands import (
    BY_ID,
    ESSENTIAL,
    JOB,
    SCREEN_BY_ID,
    SCREENS,
    ConsoleCommand,
    Requirement,
    Risk,
    known_on,
    written,
)

TOURED = [each for each in SCREENS if IS_NIGHTLY or each.id in ("overview", "jobs", "locks")]
GONE = DatabaseUnavailableError("the database is not available: terminating connection")


def front(console: Console) -> Any:
    assert console.app.front is not None
    return console.app.front


async def go(console: Console, place: str) -> None:
    console.app.visit(place)
    await console.until(lambda: place == front(console).SCREEN_ID and front(console).stands)


async def go_down(console: Console, error: Exception = GONE) -> None:
    console.source.go_down(error)
    console.reader.refresh_now()
    await console.until(lambda: console.state.connection.failure is not None)
    await console.pilot.pause()


async def helped(console: Console) -> Any:
    return await console.reach("HelpScreen")


# -- screens and keys --------------------------------------------------------------------------------------------------


def test_a_screen_that_is_shown_again_is_as_it_was_left() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#alerts").highlighted)
        await console.press("down")
        highlighted = console.table("#alerts").highlighted
        await console.press("7")
        await console.until(lambda: front(console).SCREEN_ID == "events")
        await console.press("1")
        await console.until(lambda: front(console).SCREEN_ID == "overview")
        assert console.table("#alerts").highlighted == highlighted

    run(scenario, screen="overview", size=(120, 34))


def test_every_screen_is_reached_by_its_key_and_its_help_names_the_live_keys() -> None:
    async def scenario(console: Console) -> None:
        for place in SCREENS:
            await console.press(place.key)
            await console.until(lambda place=place: place.id == front(console).SCREEN_ID and front(console).stands)
            await console.shows(f"{place.key}{place.title}")
            if place not in TOURED:
                continue
            console.app.action_help()
            words = str((await helped(console))._content())
            bound = {each.binding.id for each in front(console).active_bindings.values()}
            for name in bound & set(BY_ID):
                assert BY_ID[name].help in words
            assert BY_ID["reconnect"].help not in words
            await console.press("escape")
            await console.until(lambda: console.app.screen is front(console))

    run(scenario, screen="overview")


@pytest.mark.once
@pytest.mark.parametrize("place", [*SCREEN_BY_ID, JOB])
def test_the_bar_has_the_acts_on_the_row_the_filter_the_commands_and_the_help(place: str) -> None:
    """The actions are all that may change something and that the row under the cursor takes."""

    def wanted(console: Console) -> list[ConsoleCommand]:
        screen, found = front(console), known_on(place)
        useless = screen.useless_keys
        acts = [
            each
            for each in found
            if each.needs is Requirement.ROW and each.risk is not Risk.NONE and each.rank is not None
        ]
        possible = [each for each in acts if each.id not in useless and screen.check_action(each.id, ())]
        return [*possible, *(each for each in found if each.id in ESSENTIAL)]

    def missing(console: Console) -> list[str]:
        bar = f" {console.text.splitlines()[-1]} "
        return [each.id for each in wanted(console) if f"  {written(each.keys[0])} " not in bar]

    async def scenario(console: Console) -> None:
        await console.reach(place)
        await console.answered()
        rows = len(console.table().keys) if place != JOB else 1
        assert rows
        for _ in range(min(rows, 30 if place == "jobs" or IS_NIGHTLY else 5)):
            await console.pilot.pause()
            await console.until(lambda: not missing(console))
            await console.press("down")

    options: dict[str, Any] = {"open": "job/99007"} if place == JOB else {"screen": place}
    run(scenario, **options)


def test_the_command_line_offers_what_is_possible_and_goes_there() -> None:
    async def scenario(console: Console) -> None:
        await console.press("ctrl+p")
        await console.reach("CommandLine")
        await console.shows("Health, rates and alerts.")
        await console.pilot.press(*"console's events")
        await console.shows("This console's events and actions.")
        assert "retry" not in console.text
        await console.press("tab", "enter")
        await console.until(lambda: console.app.front is not None and front(console).SCREEN_ID == "events")

    run(scenario, screen="overview")


def test_keys_can_be_chosen_and_are_named() -> None:
    async def scenario(console: Console) -> None:
        assert "Z Freeze" in console.text
        await console.press("Z")
        await console.shows("FROZEN")

    run(scenario, screen="overview", size=(120, 34), preferences=Preferences(keys={"freeze": "Z"}))


def test_a_panel_takes_the_whole_screen_and_gives_it_back() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#alerts").highlighted)
        await console.press("z")
        await console.until(lambda: "Next jobs" not in console.text)
        lines = console.text.splitlines()
        assert "1Overview" in lines[0]
        assert "LIVE" in lines[1]
        assert "Alerts" in lines[2]
        assert "Quit" in lines[-1]
        await console.press("z")
        await console.shows("Next jobs")

    run(scenario, screen="overview")


def test_a_filter_from_elsewhere_reaches_the_screen() -> None:
    async def scenario(console: Console) -> None:
        taken: list[str] = []
        console.app.visit("events")
        await console.until(lambda: front(console).SCREEN_ID == "events")
        front(console).take_filter = taken.append
        console.app.visit("events", "words")
        await console.until(lambda: taken == ["words"])

    run(scenario, screen="overview")


def test_a_terminal_that_is_too_small_shows_a_message_and_recovers() -> None:
    async def scenario(console: Console) -> None:
        await console.shows("needs 60x20, has 59x20")
        await console.pilot.resize_terminal(60, 20)
        await console.until(lambda: "needs" not in console.text and "Alerts" in console.text)

    run(scenario, screen="overview", size=(59, 20))


def test_themes_change_while_it_runs_and_nothing_is_animated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEXTUAL_ANIMATIONS", raising=False)

    async def scenario(console: Console) -> None:
        assert console.app.animation_level == "none"
        for theme in ("gw-light", "gw-contrast", "nord"):
            console.app.theme = theme
            await console.pilot.pause()
            assert console.app.theme_variables["state-failed"]
            assert "READY" in console.text

    run(scenario, screen="overview")


# -- the state of the connection ---------------------------------------------------------------------------------------


def test_what_was_known_stays_dimmed_with_ages_that_go_on_while_the_database_is_away() -> None:
    async def scenario(console: Console) -> None:
        await console.shows("9m04s")
        await go_down(console)
        await console.shows("▲ DOWN: the database is not available")
        assert "1 queue" in console.text
        assert front(console).query_one("#body").has_class("-dimmed")
        await console.shows("r retries now")
        console.state.clock = lambda: STILL + 2
        await console.shows("9m06s")

    run(scenario, screen="overview", size=(120, 34))


def test_a_key_tries_immediately_and_the_loss_is_in_the_journal() -> None:
    async def scenario(console: Console) -> None:
        console.reader.chance = lambda: 1.0
        console.reader.failures = 6
        await go_down(console)
        console.source.come_back()
        await console.press("r")
        await console.until(lambda: console.state.phase == "live")
        words = [entry.words for entry in console.state.journal]
        lost = words.index("the database is not available: terminating connection")
        assert "connection live" in words[lost:]

    run(scenario, screen="overview")


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_read_only_offers_no_acts(is_asked_for: bool) -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: front(console).has_row)
        assert front(console).check_action("retry", ()) is False
        assert "READ-ONLY" in console.text
        assert "Retry" not in console.text

    source = None if is_asked_for else QueueSource(read_only=True)
    run(scenario, screen="jobs", read_only=is_asked_for, source=source)


def test_a_console_that_was_denied_waits_for_a_key() -> None:
    source = QueueSource()
    source.go_down(AuthenticationError("the server rejected the connection: password"))

    async def scenario(console: Console) -> None:
        await console.shows("then press r")
        assert console.state.phase == "denied"
        source.come_back()
        await console.press("r")
        await console.until(lambda: console.state.phase == "live")

    play(scenario, source, period=0.1)


def test_a_database_that_is_slow_makes_the_screen_stale_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_state, "LATE_AT_LEAST", 0.1)

    async def scenario(console: Console) -> None:
        await console.until(lambda: console.state.phase == "live")
        console.source.go_down(StatementTimeoutError("canceling statement due to statement timeout"))
        await console.shows("! STALE: no answer for")
        await console.shows("statement timeout")
        assert front(console).check_action("retry", ()) in (None, False)
        console.source.come_back()
        await console.until(lambda: "STALE" not in console.text)

    play(scenario, QueueSource(), period=0.1)


# -- paces -------------------------------------------------------------------------------------------------------------


def test_pausing_stops_the_drawing_and_not_the_measuring() -> None:
    async def scenario(console: Console) -> None:
        clock = console.source.clock
        await console.press("space")
        await console.shows("FROZEN 00:00")
        before = [str(console.app.screen.query_one(f"#{name}").render()) for name in ("ready", "running")]
        for _ in range(5):
            clock.advance(1)
            await console.refresh()
        assert [str(console.app.screen.query_one(f"#{name}").render()) for name in ("ready", "running")] == before
        assert console.state.snapshot.at == clock.now
        await console.press("space")
        await console.until(
            lambda: [str(console.app.screen.query_one(f"#{n}").render()) for n in ("ready", "running")] != before
        )

    run(scenario, screen="overview")


def test_an_unfocused_console_refreshes_less_often_and_immediately_when_it_is_back() -> None:
    from textual import events

    async def scenario(console: Console) -> None:
        console.app.post_message(events.AppBlur())
        await console.shows("unfocused: every 300s")
        before = console.source.snapshots
        console.app.post_message(events.AppFocus())
        await console.until(lambda: console.source.snapshots > before)
        await console.until(lambda: "unfocused" not in console.text)

    run(scenario, screen="overview", size=(120, 34))


def test_losing_focus_leaves_no_gaps_in_the_charts() -> None:
    """Without focus, an answer comes every ten seconds."""

    async def scenario(console: Console) -> None:
        clock = console.source.clock
        for _ in range(6):
            clock.advance(10)
            console.app.refresh_now()
            await console.until(lambda: console.state.snapshot is not None and console.state.snapshot.at == clock.now)
        for name in ("done", "added", "age"):
            found = console.app.screen.query_one(f"#{name}")
            bars = found.render_line(found.size.height - 2).text
            assert "·" not in bars[-50:], name

    run(scenario, screen="overview", size=(330, 40))


def test_the_pace_is_changed_by_keys() -> None:
    async def scenario(console: Console) -> None:
        await console.press("+")
        await console.until(lambda: console.state.period == 10.0)
        await console.press("-", "-", "-")
        await console.until(lambda: console.state.period == 30.0)

    run(scenario, screen="overview")


def test_held_changes_are_counted_in_the_frame_and_shown_when_asked() -> None:
    async def scenario(console: Console) -> None:
        table = console.table("#alerts")
        await console.until(lambda: table.highlighted is not None)
        table.marks.add("something")
        console.source.queue.run("update _private_job_queues set locked_at = null, locked_by = null")
        clock = console.source.clock
        clock.advance(3_600)
        await console.refresh()
        await console.until(lambda: table.waiting > 0)
        await console.shows("(.)")
        table.marks.clear()
        await console.press(".")
        await console.until(lambda: table.waiting == 0)

    run(scenario, screen="overview", size=(120, 34))


class DeadWorkers(QueueSource):
    """A queue that does not answer while its gate is closed, and records which threads ask it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.asked_by: set[int] = set()
        self.waiting = 0

    def last(self) -> None:
        self.asked_by.add(threading.get_ident())
        self.waiting += 1
        assert self.gate.wait(300)
        self.waiting -= 1


async def tour(console: Console) -> None:
    """Use each screen, and wait for what each key does to be seen."""
    for place in TOURED:
        await console.press(place.key)
        await console.until(lambda place=place: place.id == front(console).SCREEN_ID)
        await console.shows(f"{place.key} {place.title}")
        await console.press("down", "pagedown", "up")
        await console.press("space")
        await console.shows("FROZEN")
        await console.press("space")
        await console.until(lambda: "FROZEN" not in console.text)
        await console.press("question_mark")
        await helped(console)
        await console.press("escape")
        await console.until(lambda: console.app.screen is front(console))


@pytest.mark.once
def test_keys_do_what_they_do_while_the_database_says_nothing() -> None:
    # How late the screen is then is measured by the benchmark: the row console-lag.
    async def scenario(console: Console) -> None:
        source = console.source
        assert isinstance(source, DeadWorkers)
        source.gate.clear()
        console.reader.refresh_now()
        await console.until(lambda: source.waiting)
        before = source.snapshots
        await tour(console)
        assert source.snapshots == before
        assert source.waiting
        source.gate.set()
        await console.until(lambda: source.snapshots > before)
        assert threading.get_ident() not in source.asked_by

    run(scenario, source=DeadWorkers(), screen="overview", size=(120, 34))


# -- what is shown -----------------------------------------------------------------------------------------------------


@pytest.mark.once
def test_ascii_alone_is_enough() -> None:
    async def scenario(console: Console) -> None:
        for place in SCREENS:
            await go(console, place.id)
            await console.until(lambda: console.app.answer is not None or front(console).current_query() is None)
            await console.shows("+ LIVE")
            assert console.text.isascii(), [each for each in console.text if not each.isascii()]

    run(scenario, screen="overview", ascii=True)


def test_the_events_are_narrowed_by_words_and_written_to_a_file(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def scenario(console: Console) -> None:
        await console.listening()
        for number in range(3):
            console.source.queue.announce(number + 1)
            await console.until(
                lambda number=number: sum("announced" in e.words for e in console.state.journal) > number
            )
        await console.press("/")
        await console.type("2 jobs")
        await console.until(lambda: len(console.table("#entries").keys) == 1)
        await console.press("enter", "w")
        await console.until(lambda: list(tmp_path.iterdir()))
        await console.notified("Wrote")
        (file,) = tmp_path.iterdir()
        assert file.stat().st_mode & 0o777 == 0o600
        assert len(file.read_text().splitlines()) == len(console.state.journal)

    run(scenario, screen="events")


def test_an_exact_count_is_shown_for_a_while() -> None:
    async def scenario(console: Console) -> None:
        await console.press("=")
        await console.shows("Count complete")
        await console.acted()
        counted = console.app.action_runner.last.result.statistics  # type: ignore[union-attr]
        assert counted.total.value == len(console.source.queue.by_id)  # type: ignore[union-attr]

    run(scenario, screen="overview", size=(120, 34))


def test_the_overview_leads_to_the_failure() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#alerts").highlighted is not None)
        assert console.app.focused is console.table()
        await console.press("enter")
        await console.until(lambda: front(console).SCREEN_ID == "workers")

    run(scenario, screen="overview")
