"""Jobs in files: one a line, secrets masked, and nothing a spreadsheet would run."""

from __future__ import annotations

import csv
import json
import stat
from datetime import timedelta
from math import inf
from pathlib import Path

import pytest
from console_fixture import Console, run
from msgspec import structs
from support.console_source import QueueSource

from gw_core import JobState, Selection
from gw_core.front_ends import FoundJob
from gw_tui.dialogs import export


def found(**changes: object) -> FoundJob:
    (each,) = QueueSource().page(Selection.of(state=JobState.FAILED), limit=1).jobs
    fields = {name: getattr(each.job, name) for name in each.job.__struct_fields__}
    return structs.replace(each, job=type(each.job)(**{**fields, **changes}))


def test_both_kinds_say_the_same(tmp_path: Path) -> None:
    jobs = [found(_flags='{"a": true, "b": true}', last_error="refused, twice\nand again")]
    for kind in export.KINDS:
        export.write(tmp_path / f"jobs.{kind.id}", jobs, unmask=False)

    record = json.loads((tmp_path / "jobs.jsonl").read_text("utf-8"))
    with (tmp_path / "jobs.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert list(row) == list(record) == list(export.NAMES)
    assert row["flags"] == ",".join(record["flags"]) == "a,b"
    assert row["last_error"] == record["last_error"] == "refused, twice\nand again"
    assert row["id"] == str(record["id"])
    assert (row["locked_by"], record["locked_by"]) == ("", None)


def test_a_job_that_waits_for_others_has_no_time(tmp_path: Path) -> None:
    for kind in export.KINDS:
        export.write(tmp_path / f"jobs.{kind.id}", [found(_run_at=inf)], unmask=False)

    assert json.loads((tmp_path / "jobs.jsonl").read_text("utf-8"))["run_at"] is None
    with (tmp_path / "jobs.csv").open(newline="", encoding="utf-8") as file:
        assert [row["run_at"] for row in csv.DictReader(file)] == [""]


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1", "-1", "@sum(A1)"])
def test_a_text_like_a_formula_stays_text_in_a_spreadsheet(tmp_path: Path, text: str) -> None:
    export.write(tmp_path / "jobs.csv", [found(task=text)], unmask=False)

    with (tmp_path / "jobs.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["task"] == f"'{text}"


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_secrets_are_masked_until_they_are_shown(tmp_path: Path, kind: str) -> None:
    jobs = [found(last_error="refused: password=hunter2")]

    export.write(tmp_path / f"masked.{kind}", jobs, unmask=False)
    export.write(tmp_path / f"shown.{kind}", jobs, unmask=True)

    assert "hunter2" not in (tmp_path / f"masked.{kind}").read_text("utf-8")
    assert "hunter2" in (tmp_path / f"shown.{kind}").read_text("utf-8")


def test_only_its_owner_may_read_the_file_and_none_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    export.write(path, [found()], unmask=False)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        export.write(path, [found()], unmask=False)


def test_a_page_is_written_as_csv_by_its_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def scenario(console: Console) -> None:
        await console.until(lambda: console.table("#jobs").keys)
        await console.press("e")
        await console.choices()
        await console.pilot.pause()
        await console.press("down", "enter")
        await console.until(lambda: list(tmp_path.glob("*.csv")))

    run(scenario, filter="state:failed")
    (path,) = tmp_path.glob("gw-jobs-*.csv")
    assert len(path.read_text("utf-8").splitlines()) > 2


def test_the_events_overwrite_no_file_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name can be guessed, and others can put links into the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept").write_text("kept")

    async def scenario(console: Console) -> None:
        for second in range(600):
            at = console.state.now + timedelta(seconds=second - 5)
            Path(f"gw-events-{at:%Y%m%d-%H%M%S}.jsonl").symlink_to("kept")
        await console.press("w")
        await console.notified("Cannot write the events: File exists")

    run(scenario, screen="events")
    assert (tmp_path / "kept").read_text() == "kept"
