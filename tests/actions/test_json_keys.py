"""Every key that any command prints as JSON is on the page of the keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from support.cli_program import CliProgram, every_command
from support.jobs_in_states import Queue

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "json.md").read_text("utf-8")
INTRODUCTION = PAGE.partition("\n## ")[0]
SECTIONS = {
    name.strip(): text
    for headings, text in re.findall(r"^## (gw .*?)$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    for name in headings.split(",")
}
CRONTAB = '0 4 * * * mail/send ?id=nightly&fill=1d&max=3&queue=q&jobKey=k&jobKeyMode=replace&priority=1 {"a":1}\n'

# What shows all keys of a command, in an order in which each has something to show; a new command with --json needs a
# line here, and a part of the page.
LINES: dict[str, tuple[str, ...]] = {
    "gw add": ("add mail", "add --from jobs.jsonl"),
    "gw list": ("list --payload",),
    "gw count": ("count",),
    "gw show": ("show 1", "show 3", "show 9001"),
    "gw history": ("history --result --payload", "history --count"),
    "gw record-others": ("record-others 7d",),
    "gw actions": ("actions",),
    "gw stats": ("stats --tasks",),
    "gw queues": ("queues",),
    "gw pauses": ("pauses",),
    "gw limits": ("limits",),
    "gw groups list": ("groups list",),
    "gw groups cancel": ("groups cancel 5",),
    "gw tasks": ("tasks",),
    "gw tui": ("tui --once",),
    "gw remove": ("remove key",),
    "gw complete": ("complete 1 99", "complete --all --dry-run"),
    "gw fail": ("fail 1 99", "fail --all --dry-run"),
    "gw reschedule": ("reschedule 1 99 --run-at now", "reschedule --all --dry-run --run-at now"),
    "gw retry": ("retry 1 99", "retry --all --dry-run"),
    "gw unlock": ("unlock pool-1 --yes",),
    "gw workers": ("workers",),
    "gw sweep": ("sweep --dry-run",),
    "gw cancel": ("cancel 1 --timeout 0s",),
    "gw pause": ("pause queue:q --until +1h",),
    "gw resume": ("resume flag:f",),
    "gw limit": ("limit mail --running 4 --rate 100/s", "limit mail --off"),
    "gw cleanup": ("cleanup failed-jobs --dry-run",),
    "gw doctor": ("doctor",),
    "gw health": ("health",),
    "gw bench": ("bench --count 100",),
    "gw init": ("init",),
    "gw grants": ("grants",),
    "gw grant": ("grant viewer pg_monitor",),
    "gw revoke": ("revoke pg_monitor",),
    "gw migrate": ("migrate --plan --schema other", "migrate --schema other"),
    "gw config show": ("config show",),
    "gw cron parse": ("cron parse crontab",),
    "gw cron validate": ("cron validate wrong",),
    "gw cron next": ("cron next crontab",),
    "gw cron run": ("cron run nightly --crontab crontab",),
    "gw cron list": ("cron list",),
    "gw cron forget": ("cron forget nightly",),
}


def test_every_command_that_prints_json_is_tried_here() -> None:
    commands = every_command().items()
    printing = {name for name, command in commands for each in command.params if "--json" in each.opts}

    assert printing - set(LINES) == set(), "add what shows its keys to LINES, and its part to docs/reference/json.md"
    assert set(SECTIONS) == set(LINES)


def test_the_keys_of_a_command_are_those_on_the_page(gw: CliProgram, queue: Queue, tmp_path: Path) -> None:
    fill(queue, tmp_path)
    for name, lines in LINES.items():
        printed: set[str] = set()
        for line in lines:
            ended = gw(*line.split(), "--json")
            printed |= keys_in(ended.json)
            shape = "list of" if isinstance(ended.json, list) else "one object"
            assert shape in SECTIONS[name].lower(), f"gw {line} prints {shape}"
        # A part may say that there are the keys of another one as well.
        parts = [SECTIONS[each] for each in (name, *re.findall(r"`(gw \w+)`", SECTIONS[name])) if each in SECTIONS]
        promised = {"count", "quality"} | {
            key for part in parts for key in re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)
        }

        assert printed, f"{name} printed nothing"
        assert not {each for each in printed if each.endswith("_age")}, f"{name}: the unit is missing"
        assert printed - promised == set(), f"{name}: not documented"


IN_ONE_DATABASE = ("gw add", "gw show", "gw cron run")
WITH_SHARDS = [name for name in LINES if any("--shard" in each.opts for each in every_command()[name].params)]


def test_with_shards_every_record_has_the_name_of_its_shard(gw: CliProgram, queue: Queue, tmp_path: Path) -> None:
    fill(queue, tmp_path)

    for line in (line for each in WITH_SHARDS if each not in (*IN_ONE_DATABASE, "gw tui") for line in LINES[each]):
        records = gw(*line.split(), "--shard", f"eu={queue.url}", "--json").json
        assert {each["shard"] for each in records} == {"eu"}, line


def test_the_page_names_the_commands_that_work_in_one_database() -> None:
    assert [each for each in IN_ONE_DATABASE if f"`{each}`" not in INTRODUCTION] == []


def fill(queue: Queue, folder: Path) -> None:
    """Make one of everything."""
    queue.running(by="pool-1", since="1 hour", queue_name="q", job_key="key")
    queue.rows("update graphile_worker._private_job_queues set locked_at = locked_at - interval '1 hour'")
    queue.failed("mail", queue_name="q")
    queue.backoff(flags=["f"])
    queue.scheduled()
    queue.heartbeat("pool-1", ago="10000 seconds")
    queue.rows("insert into graphile_worker._private_known_crontabs values ('nightly', now(), now())")
    queue.rows(
        "insert into graphile_worker._private_gw_pauses (kind, name, until, reason, paused_by)"
        " values ('flag', 'f', now() + interval '1 hour', 'provider down', 'ada')"
    )
    queue.client.grants.grant("viewer", "pg_monitor")
    queue.client.jobs.reschedule([2], priority=0, by="ada")
    if queue.value("select to_regclass('graphile_worker._private_gw_history') is not null"):
        queue.rows(
            "insert into graphile_worker._private_gw_history (job_id, attempt, max_attempts, task, state, final, "
            "result, worker_id, created_at, started_at, finished_at, expires_at) values (9001, 1, 25, 'mail', "
            "'completed', true, '1', 'pool-1', now(), now(), now(), now() + interval '1 day')"
        )
    queue.rows(
        "insert into graphile_worker._private_gw_waiting (job_id, after, on_failure) values (%s, '{1,2}', 'hold')",
        queue.make("last", "run_at = 'infinity'"),
    )
    queue.rows(
        "insert into graphile_worker._private_gw_limits (task, most_running, per_period, period_seconds, burst, set_by)"
        " values ('mail', 4, 100, 1, 10, 'ada')"
    )
    (folder / "crontab").write_text(CRONTAB)
    (folder / "wrong").write_text("0 4 * * mail\n")
    (folder / "jobs.jsonl").write_text('{"task": "hello"}\n')


def keys_in(value: Any) -> set[str]:
    """Every key of a JSON value at any depth; what a payload holds is the user's."""
    match value:
        case dict():
            inside = (
                keys_in(each) for key, each in value.items() if key not in ("payload", "flags", "states", "details")
            )
            return set(value).union(*inside)
        case list():
            return set().union(*map(keys_in, value))
    return set()
