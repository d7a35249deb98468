"""The same facts without a screen: as lines, and as JSON with documented keys."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from console_fixture import queue_source
from hostile_console import EVIL, HostileSource
from late_source import LateSource, locked_queue, nones_in
from support.console_source import QueueSource

from gw_core import Client, JobSpec, JobState
from gw_tui.print_once import lines_of, read_once, record_of

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"


def keys_in(value: Any) -> Iterator[str]:
    """Yield every key, but for those that are names of states."""
    match value:
        case dict():
            for key, inner in value.items():
                if key not in set(JobState) or "quality" not in str(inner):
                    yield key
                yield from keys_in(inner)
        case list() | tuple():
            for inner in value:
                yield from keys_in(inner)


def documented() -> set[str]:
    (section,) = re.findall(r"^## gw tui\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def ran(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gw_cli", "tui", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **environment},
    )


def test_every_key_is_documented_and_nothing_else() -> None:
    record = record_of(read_once(QueueSource()))

    named = "at target schema server states priorities workers locked_queues unknown alerts"
    assert list(record) == named.split()
    assert set(keys_in(record)) - {"count", "quality"} == documented() - {"ready"}


def test_the_lines_show_the_alerts() -> None:
    lines = list(lines_of(read_once(QueueSource())))

    assert lines[0] == "app@demo/shop  schema graphile_worker  2026-03-14T14:52:07Z"
    assert "  ▲ 4 due jobs in 1 queue wait: worker gw-app-3-977-760e1f is gone  9m04s" in lines
    assert any(line.startswith("✖ failed") for line in lines)


def test_nothing_in_the_data_steers_a_terminal() -> None:
    lines = list(lines_of(read_once(HostileSource())))

    assert all(line.isprintable() or not line for line in lines)
    assert any("␛]52" in line for line in lines)


def test_json_keeps_the_data_to_the_letter_and_does_no_harm(capsys: pytest.CaptureFixture[str]) -> None:
    from gw_cli.commands.tui import print_overview

    assert print_overview(HostileSource(), as_json=True) == 0

    written = capsys.readouterr().out
    assert written.rstrip("\n").isprintable()
    assert json.loads(written)["priorities"][0]["oldest_task"] == EVIL


def test_a_pipe_gets_lines_and_a_word_on_stderr() -> None:
    found = ran("--demo")

    assert found.returncode == 0
    assert "Alerts:" in found.stdout
    assert found.stderr == "no terminal to draw on: this is what --once prints.\n"


def test_a_database_that_is_away_is_a_code_and_a_sentence() -> None:
    found = ran("--once", "--connection", "postgres://x@127.0.0.1:1/x")

    assert found.returncode == 3
    assert found.stdout == ""
    assert found.stderr.startswith("gw: the database cannot be reached")


def test_a_database_without_a_queue_is_a_code_and_a_sentence(empty_database_url: str) -> None:
    found = ran("--once", "--connection", empty_database_url)

    assert found.returncode == 5
    assert found.stdout == ""
    assert found.stderr.startswith("gw: schema 'graphile_worker' is not installed or incomplete")


def test_a_missing_database_address_is_reported_immediately() -> None:
    found = ran("--once")

    assert found.returncode == 2
    assert "no database was named" in found.stderr


def test_a_real_queue_says_the_same_as_its_statistics(database_url: str) -> None:
    with Client(database_url) as client:
        client.add_many([JobSpec(task="mail", priority=number % 2) for number in range(5)])
    source = queue_source(database_url)

    record = record_of(read_once(source))
    source.close()

    assert record["states"]["ready"] == {"count": 5, "quality": "exact"}
    assert [head["priority"] for head in record["priorities"]] == [0, 1]
    assert record["server"]["read_only"] is False


# -- what is not read in time ------------------------------------------------------------------------------------------


@pytest.fixture
def stuck(database_url: str) -> Iterator[str]:
    with locked_queue(database_url) as url:
        yield url


def test_once_prints_what_it_knows(stuck: str) -> None:
    source = LateSource(stuck)
    whole = list(lines_of(read_once(source)))
    for late in sorted(source.asked):
        source.late = late
        found = read_once(source)
        lines, record = list(lines_of(found)), record_of(found)

        assert lines[0] == whole[0] or late == "snapshot"
        assert any("unknown" in line for line in lines), late
        assert not nones_in(lines) - nones_in(whole), late
        assert record["unknown"], late


def test_once_prints_no_number_for_counts_that_are_late(stuck: str) -> None:
    source = LateSource(stuck)
    source.late = "statistics"

    found = read_once(source)
    match record_of(found)["states"]:
        case {"scheduled": scheduled, "ready": ready}:
            assert scheduled is None
            assert ready is not None
        case other:
            raise AssertionError(other)
    assert re.search(r"sched\w* +unknown", "\n".join(lines_of(found)))
