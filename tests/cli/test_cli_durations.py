"""Durations that adapt to the threshold of a sweep, as commands and `gw config show` see them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gw_cli.settings import resolve as r, table as c

DURATIONS = (c.HEARTBEAT_INTERVAL, c.SWEEP_INTERVAL, c.RECOVERY_DELAY)


def durations(**flags: str) -> dict[str, tuple[timedelta, str]]:
    configuration = r.resolve(r.Sources(flags={name.replace("_", "-"): value for name, value in flags.items()}))
    return {each.name: (configuration[each], configuration.origin(each).kind) for each in DURATIONS}


def test_a_short_threshold_alone_makes_them_short() -> None:
    assert durations(sweep_threshold="20s") == {
        "heartbeat-interval": (timedelta(seconds=5), "default"),
        "sweep-interval": (timedelta(seconds=5), "default"),
        "recovery-delay": (timedelta(seconds=2), "default"),
    }


@pytest.mark.parametrize("name", [each.name for each in DURATIONS])
def test_one_that_is_given_stays_as_it_is_given(name: str) -> None:
    usual = c.BY_NAME[name].kind.write(c.BY_NAME[name].default)

    given = durations(sweep_threshold="20s", **{name.replace("-", "_"): usual})

    assert given[name] == (c.BY_NAME[name].default, "flag")
    assert [origin for _, origin in given.values()].count("default") == 2
