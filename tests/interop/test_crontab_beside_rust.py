"""What graphile_worker_rs makes of a crontab that it shares with us, and where the compatibility page warns."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from support.rust_worker import BESIDE_OURS, NEWEST, WITHOUT_RETIREMENTS, rust_worker

from gw_core.crontab import parse_crontab

pytestmark = [pytest.mark.interop, pytest.mark.once]

TIMES: Final = [
    datetime(2026, 11, 1) + timedelta(days=day, hours=hour, minutes=minute)
    for day in range(92)
    for hour in (0, 4, 23)
    for minute in (0, 7, 30, 59)
]
ALIKE: Final = (
    "* * * * *",
    "0 4 * * *",
    "*/7 0,4 * * *",
    "30-59 23 1-7 * *",
    "0 4 */3 * *",
    "0 4 1,15 */2 *",
    "0 4 * * 1-5",
    "0 4 * 12 2,6",
)


def theirs(text: str, version: str = NEWEST) -> Any:
    return rust_worker(version).read_crontab(text, TIMES)


def ours(text: str) -> list[dict[str, Any]]:
    return [
        {
            "identifier": item.identifier,
            "job_key": item.job_key,
            "due": [
                time.isoformat()
                for time in TIMES
                if time.minute in item.schedule.minutes
                and time.hour in item.schedule.hours
                and item.schedule.matches_day(time.day, time.month, time.isoweekday() % 7)
            ],
        }
        for item in parse_crontab(text)
    ]


def days(item: dict[str, Any]) -> set[str]:
    return {datetime.fromisoformat(time).strftime("%a") for time in item["due"]}


@pytest.mark.parametrize("version", BESIDE_OURS)
def test_most_schedules_mean_the_same(version: str) -> None:
    text = "\n".join(f"{schedule} report ?id=item{number}" for number, schedule in enumerate(ALIKE))

    assert theirs(text, version) == ours(text)


def test_sunday_cannot_be_written() -> None:
    assert [days(item) for item in theirs("0 4 * * 0 report")] == [set()]
    assert [days(item) for item in ours("0 4 * * 0 report")] == [{"Sun"}]
    assert "0 4 * * 7 report" in theirs("0 4 * * 7 report")


def test_steps_of_days_of_the_week_count_from_monday() -> None:
    assert [days(item) for item in theirs("0 4 * * */2 report")] == [{"Mon", "Wed", "Fri", "Sun"}]
    assert [days(item) for item in ours("0 4 * * */2 report")] == [{"Sun", "Tue", "Thu", "Sat"}]


def test_both_days_must_match() -> None:
    [rust], [python] = theirs("0 4 1 * 1 report"), ours("0 4 1 * 1 report")

    assert set(rust["due"]) < set(python["due"])
    assert {time.day for time in map(datetime.fromisoformat, rust["due"])} <= {1}


def test_options_have_other_names_and_unknown_ones_are_ignored() -> None:
    assert [item["job_key"] for item in theirs("0 4 * * * report ?jobKey=k")] == [None]
    assert [item["job_key"] for item in theirs("0 4 * * * report ?job_key=k")] == ["k"]
    assert [item["job_key"] for item in ours("0 4 * * * report ?jobKey=k")] == ["k"]


def test_version_0_13_5_ignores_the_lines_after_an_empty_or_a_wrong_one() -> None:
    text = "0 4 * * * report ?id=a\n\n0 4 * * * report ?id=b\n"

    assert [item["identifier"] for item in theirs(text, WITHOUT_RETIREMENTS)] == ["a"]
    assert [item["identifier"] for item in theirs(text)] == ["a", "b"]
