"""`gw pause`, `resume`, `pauses`, `limit` and `limits` as programs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from support.cli_program import CliProgram
from support.jobs_in_states import Queue

from gw_cli.commands.pause import end_time
from gw_core.errors import InvalidInputError

NOW = datetime(2026, 3, 5, 13, 30, tzinfo=timezone(timedelta(hours=2)))


def test_what_is_paused_is_listed_and_resumed(gw: CliProgram, queue: Queue) -> None:
    paused = gw("pause", "task:mail", "queue:slow", "--until", "+1h", "--reason", "provider down", "--json")
    listed = gw("pauses", "--json")
    resumed = gw("resume", "task:mail", "queue:slow")
    again = gw("resume", "task:mail")

    assert paused.json == [
        {"target": "task:mail", "result": "paused", "unconfirmed": []},
        {"target": "queue:slow", "result": "paused", "unconfirmed": []},
    ]
    assert [(each["target"], each["reason"]) for each in listed.json] == [
        ("queue:slow", "provider down"),
        ("task:mail", "provider down"),
    ]
    assert all("@" in each["by"] and each["until"] for each in listed.json)
    assert (resumed.code, again.code) == (0, 6)
    assert "is not paused" in again.err


def test_what_was_not_paused_is_not_said_to_be_resumed(gw: CliProgram, queue: Queue) -> None:
    gw("pause", "task:mail")

    ended = gw("resume", "task:mail", "queue:slow", "--json")

    assert (ended.code, [(each["target"], each["result"]) for each in ended.json]) == (
        0,
        [("task:mail", "resumed"), ("queue:slow", "not_paused")],
    )


def test_targets_of_which_none_is_paused_are_named_in_one_sentence(gw: CliProgram, queue: Queue) -> None:
    ended = gw("resume", "task:mail", "queue:slow")

    assert (ended.code, ended.err) == (
        6,
        "gw: 'task:mail', 'queue:slow' are not paused; gw pauses lists what is\n",
    )


def test_an_unknown_name_causes_a_warning_and_is_paused_all_the_same(gw: CliProgram, queue: Queue) -> None:
    queue.ready("mail", queue_name="slow")
    queue.run("insert into _private_known_crontabs values ('nightly', now())")

    for arguments, doubt in (
        (("pause", "task:mial"), "no worker has registered a task 'mial'; did you mean 'mail'?"),
        (("pause", "queue:slwo"), "there is no queue 'slwo'; did you mean 'slow'?"),
        (("pause", "cron:nihgtly"), "no worker has registered a cron item 'nihgtly'; did you mean 'nightly'?"),
        (("limit", "mial", "--running", "4"), "no worker has registered a task 'mial'; did you mean 'mail'?"),
    ):
        ended = gw(*arguments)
        assert (ended.code, ended.err.strip()) == (0, doubt)
    assert gw("pause", "task:mail", "queue:slow", "flag:f", "cron:nightly", "all").err == ""
    assert gw("limit", "mail", "--running", "4").err == ""


def test_what_a_result_names_can_be_given_to_the_next_command(gw: CliProgram, queue: Queue) -> None:
    queue.ready("mail")

    [limited] = gw("limit", "mail", "--running", "4", "--json").json
    again = gw("limit", limited["target"], "--running", "2", "--json")
    listed = gw("limits", "--json").json
    off = gw("limit", limited["target"], "--off", "--json")

    assert (limited["target"], again.json[0]["target"], again.err) == ("task:mail", "task:mail", "")
    assert [(each["task"], each["running"]) for each in listed] == [("mail", 2)]
    assert [each["target"] for each in off.json] == ["task:mail"]
    assert gw("limits", "--json").json == []


@pytest.mark.parametrize("target", ["queue:slow", "flag:f", "cron:nightly"])
@pytest.mark.parametrize("command", [("limit", "{}", "--running", "4"), ("cleanup", "unused-tasks", "--keep", "{}")])
def test_a_command_for_tasks_rejects_other_targets_and_changes_nothing(
    command: tuple[str, ...], target: str, gw: CliProgram, queue: Queue
) -> None:
    queue.run("insert into _private_tasks (identifier) values ('unused')")

    ended = gw(*(word.format(target) for word in command))

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"gw: '{target}' does not name a task; give NAME or task:NAME")
    assert gw("limits", "--json").json == []
    assert queue.rows("select identifier from graphile_worker._private_tasks")


def test_a_task_with_a_colon_in_its_name_is_limited(gw: CliProgram, queue: Queue) -> None:
    gw("limit", "task:queue:slow", "--running", "4")
    gw("limit", "billing:invoice", "--running", "4")

    assert sorted(each["task"] for each in gw("limits", "--json").json) == ["billing:invoice", "queue:slow"]


def test_a_worker_that_does_not_confirm_is_named_and_fails_the_command(gw: CliProgram, queue: Queue) -> None:
    queue.heartbeat("gw-host-1")

    ended = gw("pause", "all")

    assert (ended.code, "gw-host-1" in ended.err) == (1, True)
    assert queue.rows("select kind from graphile_worker._private_gw_pauses") == [("all",)]


def test_a_limit_is_set_listed_and_removed(gw: CliProgram, queue: Queue) -> None:
    assert gw("limit", "mail", "--running", "4", "--rate", "500/15m").code == 0
    [listed] = gw("limits", "--json").json
    assert (listed["task"], listed["running"], listed["per_period"], listed["period_seconds"]) == ("mail", 4, 500, 900)

    assert listed["field"] is None
    assert gw("limit", "mail", "--running", "2", "--field", "customer.id").code == 0
    assert [each["field"] for each in gw("limits", "--json").json] == ["customer.id"]

    assert gw("limit", "mail", "--off").code == 0
    assert gw("limit", "mail", "--off").code == 6


@pytest.mark.parametrize(
    "arguments",
    [
        ("pause", "mail"),
        ("pause", "all", "--until", "-1h"),
        ("pause", "all", "--until", "yesterday"),
        ("limit", "mail"),
        ("limit", "mail", "--rate", "100"),
        ("limit", "mail", "--rate", "0/s"),
        ("limit", "mail", "--running", "none"),
        ("limit", "mail", "--burst", "5"),
        ("limit", "mail", "--off", "--running", "5"),
        ("limit", "mail", "--running", "5", "--field", "a b"),
    ],
    ids=" ".join,
)
def test_wrong_input_gets_one_sentence_and_changes_nothing(
    gw: CliProgram, queue: Queue, arguments: tuple[str, ...]
) -> None:
    ended = gw(*arguments)

    assert (ended.code, len(ended.err.strip().splitlines())) == (2, 1), ended.err
    assert queue.rows("select 1 from graphile_worker._private_gw_pauses") == []
    assert queue.rows("select 1 from graphile_worker._private_gw_limits") == []


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("14:00", datetime(2026, 3, 5, 14, 0)),
        ("13:30", datetime(2026, 3, 6, 13, 30)),
        ("9:05", datetime(2026, 3, 6, 9, 5)),
    ],
)
def test_a_time_of_day_is_the_next_one(text: str, end: datetime) -> None:
    found = end_time(text, NOW)

    assert isinstance(found, datetime)
    assert found.replace(tzinfo=None) == end
    assert found.tzinfo is not None


def test_other_ends_are_durations_and_times() -> None:
    assert end_time("+90m", NOW) == timedelta(minutes=90)
    # A time that is over by this machine's clock may lie ahead by the database's.
    assert end_time("2026-03-05T10:00:00Z", NOW) == datetime(2026, 3, 5, 10, tzinfo=UTC)
    for text in ("now", "-5m"):
        with pytest.raises(InvalidInputError, match="is over"):
            end_time(text, NOW)


def test_an_end_that_is_over_is_rejected(gw: CliProgram, queue: Queue) -> None:
    ended = gw("pause", "task:mail", "--until", "2020-03-05T10:00:00Z")

    assert (ended.code, ended.err) == (2, "gw: the pause ends before it begins; give a future time\n")
    assert gw("pauses", "--json").out == "[]\n"
