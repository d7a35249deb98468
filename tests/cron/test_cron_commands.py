"""`gw cron`: crontabs shown, checked, looked ahead in, and one item run now."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli_program import CliProgram
from support.cron_fixture import CronFixture

CRONTAB = """\
30 4 * * 1 send_weekly_email ?fill=2d&max=10 {onboarding: false}
0 */4 * * * rollup
0 0 29 2 * leap ?id=leap-day&queue=q&jobKey=k&priority=-3
"""
WRONG = "* 24 * * * late\n* * * * * fine\n@daily never\n"

Gw = Callable[..., tuple[int, str, str]]


@pytest.fixture
def gw(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Gw:
    """Run the program in an empty folder; answers its exit code, stdout and stderr."""
    program = CliProgram(capsys, monkeypatch)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        ended = program(*arguments)
        return ended.code, ended.out, ended.err

    return run


@pytest.fixture
def crontab(tmp_path: Path) -> Path:
    file = tmp_path / "crontab"
    file.write_text(CRONTAB, "utf-8")
    return file


def rows(out: str) -> list[dict[str, str]]:
    head, *lines = [line.split("\t") for line in out.splitlines()]
    return [dict(zip(head, line, strict=True)) for line in lines]


# -- parse ---------------------------------------------------------------------------------------------------------


def test_parse_shows_each_item_with_its_schedule_in_words(gw: Gw, crontab: Path) -> None:
    code, out, _ = gw("cron", "parse", str(crontab))

    assert code == 0
    assert [(row["id"], row["description"]) for row in rows(out)] == [
        ("send_weekly_email", "every Monday at 04:30 UTC"),
        ("rollup", "every day at 00:00, 04:00, 08:00, 12:00, 16:00 and 20:00 UTC"),
        ("leap-day", "every 29 February at 00:00 UTC"),
    ]


def test_parse_as_json_has_everything(gw: Gw, crontab: Path) -> None:
    code, out, _ = gw("cron", "parse", "--json", str(crontab))

    assert code == 0
    assert json.loads(out)[0] == {
        "id": "send_weekly_email",
        "task": "send_weekly_email",
        "schedule": "30 4 * * 1",
        "tz": "UTC",
        "description": "every Monday at 04:30 UTC",
        "fill": "2d",
        "max_attempts": 10,
        "queue_name": None,
        "job_key": None,
        "job_key_mode": None,
        "priority": None,
        "payload": {"onboarding": False},
    }
    assert json.loads(out)[2]["job_key_mode"] == "replace"


def test_parse_rejects_a_wrong_crontab_with_every_error(gw: Gw, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text(WRONG)
    code, out, err = gw("cron", "parse", "wrong")

    assert (code, out) == (2, "")
    assert "wrong:1:3: '24' is too large for the hour" in err
    assert "wrong:3:1: '@daily' is a nickname" in err


def test_a_crontab_that_is_not_there_is_one_sentence(gw: Gw) -> None:
    code, _, err = gw("cron", "parse", "nowhere")

    assert (code, err) == (2, "gw: the crontab 'nowhere' cannot be read: No such file or directory\n")


def test_a_crontab_that_is_not_text_is_one_sentence(gw: Gw, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"* * * * * a\xff")
    code, _, err = gw("cron", "parse", "binary")

    assert (code, err) == (2, "gw: the crontab 'binary' is not UTF-8: byte 12 does not fit\n")


# -- validate ------------------------------------------------------------------------------------------------------


def test_validate_is_content_with_a_right_crontab(gw: Gw, crontab: Path) -> None:
    assert gw("cron", "validate", str(crontab)) == (0, "", "3 items in 1 file, no errors.\n")


def test_validate_writes_every_error_of_every_file_as_editors_want_it(gw: Gw, crontab: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text(WRONG)
    code, out, err = gw("cron", "validate", "wrong", str(crontab), "wrong")

    assert code == 7
    assert [line.split(": ")[0] for line in out.splitlines()] == ["wrong:1:3", "wrong:3:1", "wrong:1:3", "wrong:3:1"]
    assert err == "4 errors in 3 files.\n"


def test_validate_as_json_has_places_and_lines(gw: Gw, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text(WRONG)
    code, out, _ = gw("cron", "validate", "--json", "wrong")

    assert code == 7
    assert [(error["file"], error["line"], error["column"], error["text"]) for error in json.loads(out)] == [
        ("wrong", 1, 3, "* 24 * * * late"),
        ("wrong", 3, 1, "@daily never"),
    ]


def test_validate_reads_stdin(gw: Gw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WRONG.encode())))
    code, out, _ = gw("cron", "validate", "-")

    assert code == 7
    assert out.startswith("stdin:1:3: ")


def test_validate_checks_that_the_tasks_exist(gw: Gw, crontab: Path, tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    for name in ("send_weekly_email", "rollup"):
        (tmp_path / "tasks" / f"{name}.py").write_text("def run(payload):\n    return None\n")
    code, out, _ = gw("cron", "validate", "--tasks", "tasks", str(crontab))

    assert code == 7
    assert out == f"{crontab}:3:12: unknown task 'leap'; expected one of the known tasks\n"


def test_validate_warns_of_an_item_that_never_runs(gw: Gw, tmp_path: Path) -> None:
    (tmp_path / "crontab").write_text("0 0 31 2 * never\n0 0 * * * daily\n")
    code, out, err = gw("cron", "validate")

    assert (code, out) == (0, "")
    assert err.splitlines() == [
        "crontab: 'never' will not run: never: the 31st of February does not exist",
        "2 items in this project, no errors.",
    ]


def test_validate_checks_all_items_of_the_project(gw: Gw, tmp_path: Path) -> None:
    (tmp_path / "gw.toml").write_text('[[cron]]\ntask = "late"\nschedule = "0 0 31 2 *"\n')
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "marked.py").write_text(
        'from gw_core import cron\n\n@cron("0 4 * * *")\ndef marked(payload):\n    pass\n'
    )

    assert gw("cron", "validate") == (
        0,
        "",
        "gw.toml: 'late' will not run: never: the 31st of February does not exist\n"
        "2 items in this project, no errors.\n",
    )
    (tmp_path / "crontab").write_text("0 5 * * * mail\n0 6 * * * marked\n")
    code, out, err = gw("cron", "validate", "--tasks", "tasks")
    assert (code, err.splitlines()[-1]) == (7, "3 errors in this project.")
    assert "unknown task 'late'" in out
    assert "found more than once: 'marked'" in out


def test_validate_rejects_a_mark_that_is_wrong(gw: Gw, tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "marked.py").write_text(
        'from gw_core import cron\n\n@cron("99 4 * * *")\ndef marked(payload):\n    pass\n'
    )

    code, out, _ = gw("cron", "validate")
    assert (code, "the cron pattern '99 4 * * *' is wrong" in out) == (7, True)
    assert [list(each) for each in json.loads(gw("cron", "validate", "--json")[1])] == [
        ["file", "line", "column", "message", "expected", "text"]
    ]


# -- the project's items -------------------------------------------------------------------------------------------

MARKED = """\
from gw_core import cron

@cron("0 5 * * *", id="marked")
def run(payload):
    return None
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a crontab and a task that has `@cron`, below the folder in which the program runs."""
    folder = tmp_path / "project"
    (folder / "tasks").mkdir(parents=True)
    (folder / "tasks" / "marked_task.py").write_text(MARKED)
    (folder / "crontab").write_text("0 4 * * * rollup\n")
    return folder


def test_without_a_file_the_items_are_those_of_the_crontab_and_of_the_tasks(gw: Gw, project: Path) -> None:
    options = ("--tasks", str(project / "tasks"))
    _, parsed, _ = gw("cron", "parse", *options)
    _, upcoming, _ = gw("cron", "next", *options, "-n", "2", "--after", "2026-11-22T00:00:00Z")

    assert [row["id"] for row in rows(parsed)] == ["rollup", "marked"]
    assert [(row["at"], row["id"]) for row in rows(upcoming)] == [
        ("2026-11-22T04:00:00Z", "rollup"),
        ("2026-11-22T05:00:00Z", "marked"),
    ]


def test_a_broken_task_file_is_reported_and_hides_no_other_item(gw: Gw, project: Path) -> None:
    (project / "tasks" / "broken.py").write_text("import nosuch\n")
    code, parsed, err = gw("cron", "parse", "--tasks", str(project / "tasks"))

    assert code == 0
    assert [row["id"] for row in rows(parsed)] == ["rollup", "marked"]
    assert "Skipped a task file" in err
    assert "nosuch" in err


def test_an_item_of_a_task_is_run_and_listed_with_its_next_run(gw: Gw, project: Path, world: CronFixture) -> None:
    options = ("--tasks", str(project / "tasks"), "--connection", world.database.conninfo)
    code, out, err = gw("cron", "run", "marked", *options)
    assert (code, err) == (0, "")
    assert world.execute("select id, task_identifier from graphile_worker.jobs") == [(int(out), "marked_task")]

    world.execute("insert into graphile_worker._private_known_crontabs values ('marked', now())")
    _, listed, _ = gw("cron", "list", *options)
    assert [(row["id"], row["next_run"][11:]) for row in rows(listed)] == [("marked", "05:00:00Z")]


def test_the_list_says_what_is_paused_and_counts_no_run_of_that_time_as_missed(
    gw: Gw, project: Path, world: CronFixture
) -> None:
    options = ("--tasks", str(project / "tasks"), "--connection", world.database.conninfo)
    world.execute("insert into graphile_worker._private_known_crontabs values ('marked', now() - interval '9 days')")
    paused = gw("cron", "list", *options), gw("pause", "cron:marked", "--reason", "closing", *options[2:])
    _, listed, _ = gw("cron", "list", *options)
    [before], [row] = rows(paused[0][1]), rows(listed)

    assert paused[1][0] == 0
    assert (int(before["missed"]) >= 8, row["missed"]) == (True, "0")
    assert row["paused"].endswith(": closing")
    gw("resume", "cron:marked", *options[2:])
    [row] = rows(gw("cron", "list", *options)[1])
    assert (row["missed"], row["paused"]) == ("0", "")


# -- next ----------------------------------------------------------------------------------------------------------


def test_next_shows_the_runs_of_all_items_in_the_order_of_time(gw: Gw, crontab: Path) -> None:
    code, out, _ = gw("cron", "next", str(crontab), "-n", "4", "--after", "2026-11-22T23:00:00Z")

    assert code == 0
    assert [(row["at"], row["id"]) for row in rows(out)] == [
        ("2026-11-23T00:00:00Z", "rollup"),
        ("2026-11-23T04:00:00Z", "rollup"),
        ("2026-11-23T04:30:00Z", "send_weekly_email"),
        ("2026-11-23T08:00:00Z", "rollup"),
    ]


def test_next_of_one_item_searches_years_ahead(gw: Gw, crontab: Path) -> None:
    code, out, _ = gw(
        "cron", "next", "--json", "--item", "leap-day", "-n", "2", "--after", "2096-03-01T00:00Z", str(crontab)
    )

    assert code == 0
    assert [run["at"] for run in json.loads(out)] == ["2104-02-29T00:00:00Z", "2108-02-29T00:00:00Z"]


def test_a_year_of_an_hourly_item_is_shown_whole(gw: Gw, tmp_path: Path) -> None:
    (tmp_path / "hourly").write_text("0 * * * * hourly")
    _, out, _ = gw("cron", "next", "hourly", "-n", "8760", "--after", "2026-01-01T00:00:00Z")

    assert rows(out)[-1]["at"] == "2027-01-01T00:00:00Z"


def test_next_of_a_day_that_does_not_exist_says_so(gw: Gw, tmp_path: Path) -> None:
    (tmp_path / "never").write_text("0 0 30 2 * never")

    assert gw("cron", "next", "never", "--json") == (0, "[]\n", "No item will ever run.\n")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["-n", "0"], 2), (["-n", "many"], 2), (["--after", "soon"], 2), (["--item", "nobody"], 6)],
)
def test_next_rejects_what_it_cannot_answer(gw: Gw, crontab: Path, arguments: list[str], code: int) -> None:
    found, out, err = gw("cron", "next", str(crontab), *arguments)

    assert (found, out) == (code, "")
    assert len(err.splitlines()) == 1


# -- run -----------------------------------------------------------------------------------------------------------


def test_run_adds_the_job_of_an_item_now_and_leaves_its_schedule_alone(
    gw: Gw, crontab: Path, world: CronFixture
) -> None:
    code, out, _ = gw("cron", "run", "leap-day", "--json", "--connection", world.database.conninfo)

    answer: dict[str, Any] = json.loads(out)
    assert code == 0
    assert (answer["id"], answer["task"]) == ("leap-day", "leap")
    row = world.execute("select id, queue_name, key, priority, run_at <= now() from graphile_worker.jobs")
    assert row == [(answer["job"], "q", "k", -3, True)]
    assert world.known() == {}


def test_run_of_an_unknown_item_names_those_there_are(gw: Gw, crontab: Path) -> None:
    code, _, err = gw("cron", "run", "nobody", "--connection", "postgres://127.0.0.1:1/none")

    assert code == 6
    assert "'send_weekly_email', 'rollup', 'leap-day'" in err


def test_run_of_an_unknown_item_says_that_there_are_none(gw: Gw) -> None:
    code, _, err = gw("cron", "run", "nightly", "--connection", "postgres://127.0.0.1:1/none")

    hint = "there are none; add one to the crontab or with @cron"
    assert (code, err) == (6, f"gw: unknown cron item 'nightly'; {hint}\n")


# -- items in gw.toml ----------------------------------------------------------------------------------------------

GW_TOML = """
[[cron]]
schedule = "30 2 * * *"
task = "report"
tz = "America/New_York"
id = "nightly"
fill = "4h"
max-attempts = 3
queue-name = "reports"
job-key = "report"
job_key_mode = "preserve_run_at"
priority = -5
payload = { to = "ops" }

[[cron]]
schedule = "0 * * * *"
task = "poll"
"""


def test_gw_toml_has_cron_items(gw: Gw, tmp_path: Path) -> None:
    (tmp_path / "gw.toml").write_text(GW_TOML)
    code, out, _ = gw("cron", "parse", "--json")

    assert code == 0
    assert json.loads(out)[0] == {
        "id": "nightly",
        "task": "report",
        "schedule": "30 2 * * *",
        "tz": "America/New_York",
        "description": "every day at 02:30 America/New_York",
        "fill": "4h",
        "max_attempts": 3,
        "queue_name": "reports",
        "job_key": "report",
        "job_key_mode": "preserve_run_at",
        "priority": -5,
        "payload": {"to": "ops"},
    }
    assert [(each["id"], each["tz"]) for each in json.loads(out)[1:]] == [("poll", "UTC")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("cron = 3", "give each item as a table below [[cron]]", id="no tables"),
        pytest.param("[cron]\ntask = 'a'", "give each item as a table below [[cron]]", id="one table"),
        pytest.param("[[cron]]\ntask = 'a'", "item 1: the key schedule is missing", id="no schedule"),
        pytest.param(
            "[[cron]]\nschedule = '* * * * *'\ntask = 'a'\nzone = 'UTC'",
            "item 1: the key 'zone' is unknown; valid keys are schedule, task, tz, id, fill",
            id="unknown key",
        ),
        pytest.param(
            "[[cron]]\nschedule = '* * * * *'\ntask = 'a'\npriority = '1'",
            "item 1: priority must be a number",
            id="type",
        ),
        pytest.param(
            "[[cron]]\nschedule = '* * * * *'\ntask = 'a'\ntz = 'Mars'",
            "item 1: the time zone 'Mars' is unknown",
            id="zone",
        ),
        pytest.param(
            "[[cron]]\nschedule = '* * * * *'\ntask = 'a'\n[[cron]]\nschedule = '* * * * *'\ntask = 'a'",
            "crontab identifiers must be unique",
            id="duplicates",
        ),
    ],
)
def test_a_wrong_item_in_gw_toml_is_one_sentence(gw: Gw, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "gw.toml").write_text(text)
    code, out, err = gw("cron", "parse")

    assert (code, out) == (2, "")
    assert err.startswith("gw: ")
    assert "gw.toml: cron" in err
    assert message in err


def test_next_runs_of_gw_toml_follow_its_zones(gw: Gw, tmp_path: Path) -> None:
    (tmp_path / "gw.toml").write_text(GW_TOML)
    _, out, _ = gw("cron", "next", "-n", "2", "--item", "nightly", "--after", "2025-03-08T12:00Z", "--json")

    assert [each["at"] for each in json.loads(out)] == ["2025-03-09T07:00:00Z", "2025-03-10T06:30:00Z"]
