"""Several databases in one console: each has a name, a key or a line shows another, and nothing of the first stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from console_fixture import Console, run
from support.cli_program import CliProgram
from support.waiting import wait_until
from test_command_line import entered
from tmux import Pane

from gw_core import Client, JobSpec

SEVERAL = {"context": "eu", "contexts": ("eu", "us")}


@pytest.fixture
def folder(database_url: str, second_database_url: str, tmp_path: Path) -> Path:
    """A folder whose settings name two databases; each has a job of its own."""
    for name, url in {"eu": database_url, "us": second_database_url}.items():
        with Client(url) as client:
            client.add(f"only_in_{name}")
    (tmp_path / "gw.toml").write_text(
        f'connection = "{database_url}"\n[tui]\ncontexts = ["us={second_database_url}", "away=postgres://x@127.0.0.1:1/x"]\n'
    )
    return tmp_path


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CliProgram:
    for name in ("DATABASE_URL", "PGDATABASE", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    return CliProgram(capsys, monkeypatch)


@pytest.fixture
def pane(folder: Path) -> Iterator[Pane]:
    pane = Pane(["--config", str(folder / "gw.toml"), "--screen", "jobs"], size=(120, 34), state=folder)
    try:
        yield pane
    finally:
        pane.close()


@pytest.mark.acceptance
@pytest.mark.once
def test_another_database_is_shown_and_nothing_of_the_first(pane: Pane, monkeypatch: pytest.MonkeyPatch) -> None:
    first = pane.shows("DEFAULT", "only_in_eu")
    pane.press("m")
    pane.shows("1 marked")
    pane.press(":", "context us", "Enter")
    second = pane.shows("US", "only_in_us", "LIVE")
    pane.press(":", "Up")
    pane.shows(":context us")
    pane.press("Enter")  # it is shown already
    pane.shows("? Help")
    assert "only_in_eu" not in second
    assert "marked" not in second
    assert "only_in_us" not in first
    pane.press("D")
    pane.shows("Show another database", "away")
    pane.press("Down", "Down", "Enter")
    away = pane.shows("AWAY", "DOWN")
    assert "only_in" not in away
    pane.press("D")
    pane.shows("Show another database")
    pane.press("Enter")
    pane.shows("DEFAULT", "only_in_eu", "LIVE")


@pytest.mark.acceptance
@pytest.mark.once
def test_each_database_shows_what_its_sql_says(folder: Path, database_url: str, second_database_url: str) -> None:
    urls = {"DEFAULT": database_url, "US": second_database_url}
    for factor, url in enumerate(urls.values(), 1):
        with Client(url) as client:
            client.add_many([JobSpec(task=f"task_{n}") for n in range(1, 6) for _ in range(n * 37 * factor)])
    pane = Pane(["--config", str(folder / "gw.toml"), "--screen", "tasks"], size=(120, 34), state=folder)
    try:
        for badge, keys in (("DEFAULT", []), ("US", ["D", "Down", "Enter"]), ("DEFAULT", ["D", "Enter"])):
            if keys:
                pane.press(keys[0])
                pane.shows("Show another database")
                pane.press(*keys[1:])
            pane.shows(f" {badge} ", "task_5")
            expected = ready(urls[badge])
            wait_until(lambda expected=expected: tasks_in(pane.text) == expected, what="the numbers of its tasks")
    finally:
        pane.close()


def tasks_in(text: str) -> dict[str, int]:
    """Return the ready jobs by task, as a screen shows them."""
    shown = re.findall(r"^ +(\w+_\w+) +([\d,]+)", text, re.MULTILINE)
    return {task: int(number.replace(",", "")) for task, number in shown}


def ready(url: str) -> dict[str, int]:
    """Return the ready jobs by task."""
    with psycopg.connect(url, options="-c search_path=graphile_worker") as connection:
        counts = "select identifier, count(*) from _private_jobs join _private_tasks t on t.id = task_id group by 1"
        return {str(task): int(number) for task, number in connection.execute(counts)}


def test_a_key_leaves_for_another_database_with_the_screen_and_the_theme() -> None:
    async def scenario(console: Console) -> None:
        await console.shows(" EU ")
        await entered(console)
        await console.type("jobs state:ready")
        await console.press("enter", "ctrl+t", "8", "D")
        await console.shows("Show another database")
        await console.pilot.pause()
        await console.press("down", "enter")
        await console.until(lambda: console.app.return_value is not None)
        found = console.app.return_value
        assert found is not None
        assert (found.context, found.screen, found.theme) == ("us", "tasks", "gw-light")
        assert found.typed == ("jobs state:ready",)

    run(scenario, screen="jobs", **SEVERAL)


def test_names_are_completed_and_checked_and_a_browser_stays_with_its_database() -> None:
    async def scenario(console: Console) -> None:
        entry = await entered(console)
        await console.type("context mars")
        await console.press("enter")
        await console.shows("unknown database 'mars'; databases are eu, us")
        entry.value = ""
        await console.type("context u")
        await console.press("tab")
        assert entry.value == "context us"
        await console.press("enter")
        await console.notified("gw tui --serve --context NAME")
        assert console.app.return_value is None

    run(scenario, is_served=True, **SEVERAL)


def test_a_single_database_has_nothing_to_choose() -> None:
    async def scenario(console: Console) -> None:
        await console.press("D")
        await console.notified("a single database")

    run(scenario)


def test_once_prints_every_database_with_its_name(folder: Path, program: CliProgram) -> None:
    result = program("tui", "--config", folder / "gw.toml", "--once", "--json")
    assert result.code == 3
    assert "shard away: the database cannot be reached" in result.err
    ready = {each["shard"]: each["states"]["ready"] for each in json.loads(result.out)}
    assert set(ready) == {"default", "us"}


def test_one_database_is_chosen_by_its_name(folder: Path, program: CliProgram) -> None:
    result = program("tui", "--config", folder / "gw.toml", "--once", "--context", "us")
    assert (result.code, result.out.count("schema graphile_worker")) == (0, 1)
    result = program("tui", "--config", folder / "gw.toml", "--once", "--context", "mars")
    assert (result.code, result.out) == (2, "")
    assert "give one of default, us, away" in result.err


def test_shards_are_databases_of_the_console(folder: Path, program: CliProgram, database_url: str) -> None:
    result = program("tui", "--once", "--shard", f"a={database_url}", "--shard", f"b={database_url}")
    assert result.code == 0
    assert [line for line in result.out.splitlines() if line.startswith("Shard")] == ["Shard a", "Shard b"]


def test_a_name_for_two_databases_is_rejected(folder: Path, program: CliProgram) -> None:
    text = (folder / "gw.toml").read_text()
    (folder / "gw.toml").write_text(text.replace('"us=', '"default='))
    result = program("tui", "--config", folder / "gw.toml", "--once")
    assert (result.code, result.out) == (2, "")
    assert "the name 'default' is that of another database" in result.err


def test_config_show_lists_databases_without_passwords(program: CliProgram, tmp_path: Path) -> None:
    (tmp_path / "gw.toml").write_text('[tui]\ncontexts = ["us=postgres://app:secret@db/shop"]\n')
    shown = program("config", "show", "--config", tmp_path / "gw.toml").out
    assert "secret" not in shown
    assert "tui.contexts\tus: user=app host=db dbname=shop\tfile" in shown
