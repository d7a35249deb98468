"""A runner that cannot begin, or cannot go on, says so and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from core_support import Ledger, Site, a_registry, in_time, ms
from support import wait_until

from gw_core import InvalidSettingError, Runner, SchemaMissingError

OURS = "select count(*) from pg_stat_activity where datname = current_database() and application_name like 'gw%'"


def test_a_start_in_vain_leaves_no_connection_open(empty_database_url: str) -> None:
    runner = Runner(empty_database_url, tasks=a_registry({"work": Ledger()}), handle_signals=False, migrate=False)

    with pytest.raises(SchemaMissingError):
        runner.start()

    with psycopg.connect(empty_database_url, autocommit=True) as hands:
        # The server takes a moment to see that a client has hung up.
        wait_until(lambda: hands.execute(OURS).fetchone() == (0,))


# -- forbidden flags -----------------------------------------------------------------------------------------------


def _raise() -> list[str]:
    raise OSError("the list of flags is away")


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        pytest.param(_raise, "the list of flags is away", id="it raises"),
        pytest.param(lambda: "slow", "it must return a list of names", id="it returns a text"),
    ],
)
def test_a_run_once_ends_when_nobody_says_which_flags_are_forbidden(
    site: Site, flags: Callable[[], list[str]], reason: str
) -> None:
    done = Ledger()
    site.fill(1)

    result = site.run_once({"work": done}, forbidden_flags=flags, poll_interval=ms(10))

    assert (result.exit_code, reason in result.reason, done.entries, site.held()) == (1, True, [], [])


def test_a_function_that_fails_now_and_then_ends_no_run(site: Site) -> None:
    done, answers = Ledger(), iter([None, None, *[[]] * 100])
    site.fill(1)

    def flags() -> list[str]:
        answer = next(answers)
        if answer is None:
            raise OSError("not now")
        return answer

    result = site.run_once({"work": done}, forbidden_flags=flags, poll_interval=ms(10))

    assert (result.exit_code, done.entries) == (0, [1])


def test_a_text_in_place_of_forbidden_flags_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"write \['slow'\]"):
        Runner("postgres://nowhere", tasks=a_registry({"work": Ledger()}), forbidden_flags="slow")


# -- a stop before the start ---------------------------------------------------------------------------------------


def test_a_stop_forced_before_the_start_gives_back_at_once(site: Site) -> None:
    site.fill(1)
    gate = site.gate()
    runner, _, _ = site.runner({"work": gate}, grace_period=ms(600_000))
    runner.stop("too early")
    runner.force()
    runner.start()
    gate.wait_for(1)

    assert in_time(runner.wait).reason == "too early"
    gate.open()
    assert site.held() == []
