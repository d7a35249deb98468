"""`gw groups list` and `gw groups cancel` as programs."""

from __future__ import annotations

from support.cli_program import CliProgram
from support.jobs_in_states import Queue

from gw_core import Client, JobSpec


def add_group(queue: Queue, key: str) -> int:
    with Client(queue.url) as client:
        group = client.groups.add([JobSpec(task="work")] * 2, then=JobSpec(task="last", job_key=key))
    return group.id


def test_waiting_jobs_are_cancelled_as_running_ones_are(gw: CliProgram, queue: Queue) -> None:
    first, second, third = add_group(queue, "a"), add_group(queue, "b"), add_group(queue, "c")

    assert gw("cancel", "task:last", "--yes").code == 6
    assert gw("cancel", "--job-key", "a", "--json").json == [
        {"id": first, "task": "last", "result": "cancelled", "worker": None}
    ]
    asked = gw("cancel", "state:waiting")
    assert (asked.code, "2 jobs would be cancelled" in asked.err) == (2, True)
    done = gw("cancel", "--state", "waiting", "--yes", "--json")
    assert (done.code, [each["id"] for each in done.json]) == (0, [second, third])
    assert gw("groups", "list", "--json").json == []


def test_waiting_groups_are_listed_and_cancelled(gw: CliProgram, queue: Queue) -> None:
    first, second = add_group(queue, "a"), add_group(queue, "b")

    listed = gw("groups", "list", "--json").json
    found = [(each["id"], each["task"], each["job_key"], each["open"], each["on_failure"]) for each in listed]
    assert found == [(first, "last", "a", 2, "hold"), (second, "last", "b", 2, "hold")]

    done = gw("groups", "cancel", str(first), "999999999", "--json")
    assert done.code == 1
    assert done.json == [{"id": first, "result": "cancelled"}, {"id": 999999999, "result": "not_found"}]
    assert "last" in gw("groups", "list", "--table").out
    assert gw("groups", "cancel", str(first)).code == 6
    assert gw("groups", "cancel", "first").code == 2
    assert gw("groups", "cancel", str(second)).code == 0
    assert gw("groups", "list", "--json").json == []
