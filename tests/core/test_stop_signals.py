"""Several signals within five seconds are one request to stop; a later one ends the grace period."""

from __future__ import annotations

import pytest

from gw_core.domain.rules.stop_signals import StopSignals


def effects(*arrivals: tuple[str, float]) -> list[str]:
    """Return what each of these signals does, given its name and its time."""
    signals = StopSignals()
    received = [signals.receive(name, now) for name, now in arrivals]
    return ["force" if each.forced else "repeat" if each.repeated else "stop" for each in received]


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        pytest.param([("SIGTERM", 100.0)], ["stop"], id="one"),
        pytest.param([("SIGTERM", 100.0), ("SIGTERM", 100.02)], ["stop", "repeat"], id="a wrapper that forwards it"),
        pytest.param([("SIGTERM", 100.0), ("SIGHUP", 100.0)], ["stop", "repeat"], id="systemd with SendSIGHUP"),
        pytest.param([("SIGINT", 100.0), ("SIGINT", 104.9)], ["stop", "repeat"], id="Ctrl-C twice"),
        pytest.param([("SIGINT", 100.0), ("SIGINT", 105.0)], ["stop", "force"], id="Ctrl-C again after five seconds"),
        pytest.param(
            [("SIGTERM", 100.0), ("SIGTERM", 104.0), ("SIGTERM", 106.0)],
            ["stop", "repeat", "force"],
            id="repeats do not extend the five seconds",
        ),
    ],
)
def test_what_signals_do(arrivals: list[tuple[str, float]], expected: list[str]) -> None:
    assert effects(*arrivals) == expected
