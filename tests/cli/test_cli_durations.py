"""Durations that adapt to the threshold of a sweep, as `gw config show` prints them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.shell import InProcessShell

DURATIONS = {"heartbeat-interval": "30s", "sweep-interval": "1m", "recovery-delay": "30s"}
"""Each with its default."""


@pytest.fixture
def within(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> InProcessShell:
    return InProcessShell(tmp_path, capsys=capsys, monkeypatch=monkeypatch)


def durations(within: InProcessShell, **environment: str) -> dict[str, tuple[str, str]]:
    shown = json.loads(within.gw("config", "show", "run", "--json", **environment).out)
    return {each["name"]: (each["value"], each["origin"]) for each in shown if each["name"] in DURATIONS}


def test_without_a_threshold_they_have_their_defaults(within: InProcessShell) -> None:
    assert durations(within) == {name: (value, "default") for name, value in DURATIONS.items()}


def test_a_short_threshold_alone_makes_them_short(within: InProcessShell) -> None:
    assert durations(within, GW_SWEEP_THRESHOLD="20s") == {
        "heartbeat-interval": ("5s", "default"),
        "sweep-interval": ("5s", "default"),
        "recovery-delay": ("2s", "default"),
    }


@pytest.mark.parametrize("name", DURATIONS)
def test_one_that_is_given_stays_as_it_is_given(within: InProcessShell, name: str) -> None:
    variable = "GW_" + name.upper().replace("-", "_")

    given = durations(within, GW_SWEEP_THRESHOLD="20s", **{variable: DURATIONS[name]})

    assert given[name] == (DURATIONS[name], "environment")
    assert [origin for _, origin in given.values()].count("default") == 2
