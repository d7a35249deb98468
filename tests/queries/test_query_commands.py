"""list, show, stats, queues and tasks: what they print, for people, for pipes and as JSON, and how they end."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.cli_program import CliProgram
from support.jobs_in_states import Queue

from gw_cli.commands import queues, show, stats, tasks
from gw_cli.records import JOBS
from gw_core import GiveUp, JobState, RetryAfter, TaskRegistry, run_once
from gw_core.front_ends import UNSAFE_TEXT, Quality, ReasonCode

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
EVIL = "a\x1b]52;c;aGk=\x07b\u202ec\x9bd\ttab\nline"
COMMANDS: dict[str, tuple[str, ...]] = {
    "list": ("list",),
    "list with payloads": ("list", "--payload"),
    "show": ("show", "1"),
    "stats": ("stats", "--tasks"),
    "queues": ("queues",),
    "tasks": ("tasks",),
}


@pytest.fixture
def evil(queue: Queue) -> Queue:
    """A queue in which every text holds what would steer a terminal."""
    queue.heartbeat("beating", tasks=["other"])
    queue.make(EVIL, payload={"text": EVIL}, queue_name=EVIL, job_key=EVIL, flags=[EVIL])
    queue.rows("update _private_jobs set last_error = %s, attempts = 1, locked_at = now(), locked_by = %s", EVIL, EVIL)
    queue.rows("update _private_job_queues set locked_at = now(), locked_by = %s", EVIL)
    return queue


def keys_in(value: Any) -> set[str]:
    """Every key of a JSON value, at any depth."""
    match value:
        case dict():
            return set(value) | {key for each in value.values() for key in keys_in(each)}
        case list():
            return {key for each in value for key in keys_in(each)}
    return set()


def section(name: str) -> str:
    """The part of the page about a command."""
    return PAGE.read_text("utf-8").partition(f"\n## gw {name}\n")[2].partition("\n## ")[0]


# -- harmless ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["terminal", "pipe", "json"])
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.usefixtures("evil")
def test_nothing_from_the_database_steers_the_terminal(gw: CliProgram, name: str, form: str) -> None:
    arguments = (*COMMANDS[name], *(("--json",) if form == "json" else ()))

    ended = gw(*arguments, terminal=form == "terminal")

    assert ended.code == 0
    allowed = "\n\t" if form == "pipe" else "\n"
    text = ended.out.translate({ord(each): None for each in allowed})
    assert not re.search(UNSAFE_TEXT, text)
    assert not re.search(UNSAFE_TEXT, ended.err.replace("\n", ""))


@pytest.mark.usefixtures("evil")
def test_odd_texts_survive_in_json(gw: CliProgram) -> None:
    found = gw("show", "--job-key", EVIL, "--json").json

    assert (found["task"], found["queue_name"], found["locked_by"], found["last_error"]) == (EVIL,) * 4
    assert found["payload"] == {"text": EVIL}


@pytest.mark.usefixtures("queue")
def test_an_unknown_key_is_named_harmlessly(gw: CliProgram) -> None:
    ended = gw("show", "--job-key", EVIL)

    assert ended.code == 6
    assert "no job has the key" in ended.err
    assert not re.search(UNSAFE_TEXT, ended.err.rstrip("\n"))


# -- JSON keys --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_json_key_is_documented(queue: Queue, gw: CliProgram, name: str) -> None:
    queue.one_of_each()
    queue.ready(queue_name="letters")
    found = gw(*COMMANDS[name], "--json").json
    inside = (
        found if name != "show" else {key: value for key, value in found.items() if key not in (*JOBS.keys, "payload")}
    )

    text = section(COMMANDS[name][0])
    missing = [key for key in sorted(keys_in(inside)) if f"| `{key}` |" not in text]
    assert [key for key in missing if key not in list(JobState)] == []


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("list", (*JOBS.keys, "payload")),
        (
            "show",
            (
                *show.KEYS[len(JOBS.keys) + 1 :],
                *show.REASONS.keys,
                *show.ATTEMPTS.keys,
                *show.GROUPS.keys,
                "ended_attempts",
                *ReasonCode,
            ),
        ),
        ("stats", (*stats.KEYS, *stats.COUNT_KEYS, *stats.TASK_KEYS)),
        ("queues", queues.QUEUES.keys),
        ("tasks", tasks.TASKS.keys),
    ],
)
def test_every_promised_key_is_documented_and_nothing_else(name: str, keys: tuple[str, ...]) -> None:
    documented = re.findall(r"^\| `(\w+)` \|", section(name), re.MULTILINE)

    assert set(documented) == set(map(str, keys))


def test_every_quality_is_documented() -> None:
    text = PAGE.read_text("utf-8")

    assert [each for each in Quality if f"| `{each}` |" not in text] == []


def test_json_has_the_promised_keys(queue: Queue, gw: CliProgram) -> None:
    job_id = queue.backoff(queue_name="letters")

    assert tuple(gw("list", "--json").json[0]) == JOBS.keys
    assert tuple(gw("list", "--json", "--payload").json[0]) == (*JOBS.keys, "payload")
    shown = gw("show", str(job_id), "--json").json
    assert tuple(shown) == show.KEYS
    assert tuple(shown["reasons"][0]) == show.REASONS.keys
    assert tuple(shown["upcoming_attempts"][0]) == show.ATTEMPTS.keys
    counted = gw("stats", "--tasks", "--json").json
    assert tuple(counted) == stats.KEYS
    assert tuple(counted["total"]) == stats.COUNT_KEYS
    assert tuple(counted["tasks"][0]) == stats.TASK_KEYS
    assert "tasks" not in gw("stats", "--json").json
    assert tuple(gw("queues", "--json").json[0]) == queues.QUEUES.keys
    assert tuple(gw("tasks", "--json").json[0]) == tasks.TASKS.keys


@pytest.mark.parametrize("name", ["list", "queues", "tasks"])
@pytest.mark.usefixtures("queue")
def test_nothing_is_an_empty_array_and_a_word(gw: CliProgram, name: str) -> None:
    ended = gw(name, "--json")

    assert (ended.code, ended.json) == (0, [])
    assert ended.err.strip()


# -- list -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        pytest.param(("--state", "backoff"), ["backoff"], id="a state"),
        pytest.param(("--task", "ready"), ["ready"], id="a task"),
        pytest.param(("--worker", "pool-1"), ["running"], id="a worker"),
        pytest.param(("--error", "REFUSED"), ["backoff", "failed"], id="a text in the error"),
        pytest.param(("--error", "refused", "--state", "failed"), ["failed"], id="two conditions"),
        pytest.param(("--limit", "2"), ["ready", "scheduled"], id="a few"),
        pytest.param(("--after", "2"), ["running", "backoff", "failed"], id="those after an id"),
        pytest.param(("5", "1"), ["ready", "failed"], id="ids"),
    ],
)
def test_jobs_are_listed_by_what_is_asked(
    queue: Queue, gw: CliProgram, arguments: tuple[str, ...], names: list[str]
) -> None:
    queue.one_of_each()

    assert [job["task"] for job in gw("list", *arguments, "--json").json] == names


@pytest.mark.parametrize("state", ["ready", "failed", "running"])
def test_a_list_says_where_it_goes_on(queue: Queue, gw: CliProgram, state: str) -> None:
    queue.many(5, "attempts, locked_at", f"{25 * (state == 'failed')}, {'now()' if state == 'running' else 'null'}")
    seen: list[int] = []
    after: tuple[str, ...] = ()
    while True:
        ended = gw("list", "--state", state, "--limit", "2", "--json", *after)
        seen += [job["id"] for job in ended.json]
        hint = re.search(r"--after (\S+)", ended.err)
        if hint is None:
            break
        after = ("--after", hint[1])

    assert seen == ([5, 4, 3, 2, 1] if state == "failed" else [1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    "conditions",
    [(), ("--state", "ready"), ("--state", "failed"), ("--state", "running"), ("--error", "x")],
    ids=lambda words: " ".join(words) or "all",
)
def test_a_list_mentions_more_jobs_only_when_there_are_more(
    queue: Queue, gw: CliProgram, conditions: tuple[str, ...]
) -> None:
    is_failed = "failed" in conditions
    locked = "now()" if "running" in conditions else "null"
    queue.many(3, "attempts, locked_at, last_error", f"{25 * is_failed}, {locked}, 'x'")

    assert "There are more jobs; continue with --after" in gw("list", *conditions, "--limit", "2").err
    assert gw("list", *conditions, "--limit", "3").err == ""


def test_queues_mention_more_only_when_there_are_more(queue: Queue, gw: CliProgram) -> None:
    for name in "abc":
        queue.ready(queue_name=name)

    assert "There are more queues; continue with --after 'b'" in gw("queues", "--limit", "2").err
    assert gw("queues", "--limit", "3").err == ""


def test_a_search_that_ended_early_says_so(queue: Queue, gw: CliProgram) -> None:
    queue.many(3000)

    ended = gw("list", "--error", "rare", "--timeout", "0s")

    assert ended.code == 0
    assert "checked 1,000 jobs and found 0" in ended.err
    assert "--after 1000" in ended.err


# -- show -------------------------------------------------------------------------------------------------------------


def test_a_job_is_shown_to_a_person_with_reasons_and_attempts(queue: Queue, gw: CliProgram) -> None:
    job_id = queue.backoff(error="first line\nsecond line", payload={"n": 1})

    text = gw("show", str(job_id), terminal=True).out

    assert re.search(r"^state +backoff$", text, re.MULTILINE)
    assert "first line\n    second line" in text
    assert '{"n":1}' in text
    assert re.search(r"^why +attempt 3 failed, the next is due later: in (1h|5\dm(\d+s)?)$", text, re.MULTILINE)
    assert re.search(r"attempt 4 at \S+Z$", text, re.MULTILINE)
    assert re.search(r"attempt 25 at \S+Z \(inferred\)$", text, re.MULTILINE)


@pytest.mark.parametrize(
    "error", [RetryAfter(5, "later"), GiveUp("never"), ValueError("boom")], ids=lambda error: type(error).__name__
)
def test_no_time_of_failure_is_guessed(queue: Queue, gw: CliProgram, error: Exception) -> None:
    job_id = queue.make("later", change="attempts = 6, created_at = now() - interval '1 day'")
    tasks = TaskRegistry()

    @tasks.task("later")
    def later(payload: object) -> None:
        raise error

    run_once(queue.url, tasks=tasks)

    assert gw("show", str(job_id), "--json").json["failed_at"] is None
    assert "failed_at" not in gw("show", str(job_id), terminal=True).out


def test_a_job_is_shown_to_a_pipe_as_names_and_values(queue: Queue, gw: CliProgram) -> None:
    job_id = queue.failed()

    fields = dict(line.split("\t") for line in gw("show", str(job_id)).out.splitlines())

    assert (fields["id"], fields["state"], fields["payload"]) == (str(job_id), "failed", "{}")
    assert fields["reason"].startswith("failed: ")


def test_numbers_of_a_payload_keep_every_digit(queue: Queue, gw: CliProgram) -> None:
    job_id = queue.ready()
    queue.rows("update _private_jobs set payload = '{\"n\": 12345678901234567890.10}'")

    assert '{"n": 12345678901234567890.10}' in gw("show", str(job_id), "--json").out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(("show",), 2, "name one job", id="no job"),
        pytest.param(("show", "1", "--job-key", "k"), 2, "name one job", id="two names"),
        pytest.param(("show", "one"), 2, "whole number", id="no number"),
        pytest.param(("show", "0"), 2, "not the id of a job", id="no id"),
        pytest.param(("show", "77"), 6, "there is no job 77", id="no such id"),
        pytest.param(("list", "--state", "gone"), 2, "--state 'gone'", id="no state"),
        pytest.param(("list", "--after", "x"), 2, "cursor that the previous page ended with", id="no mark"),
        pytest.param(("list", "--timeout", "soon"), 2, "not a duration", id="no span"),
        pytest.param(("list", "--task", ""), 2, "is empty", id="an empty name"),
        pytest.param(("list", "--limit", "100001"), 2, "from 1 to", id="too many"),
        pytest.param(("stats", "--interval", "1ms"), 2, "slows the workers down", id="too often"),
        pytest.param(("queues", "--limit", "0"), 2, "from 1 to", id="no queues"),
    ],
)
@pytest.mark.usefixtures("queue")
def test_wrong_input_is_one_sentence(gw: CliProgram, arguments: tuple[str, ...], code: int, words: str) -> None:
    ended = gw(*arguments)

    assert (ended.code, ended.out) == (code, "")
    assert words in ended.err
    assert len(ended.err.splitlines()) == 1


# -- stats, queues, tasks ---------------------------------------------------------------------------------------------


def test_statistics_for_a_person_end_with_what_is_next(queue: Queue, gw: CliProgram) -> None:
    queue.one_of_each()

    text = gw("stats", terminal=True).out

    assert re.search(r"^ready +1$", text, re.MULTILINE)
    assert re.search(r"^total +5$", text, re.MULTILINE)
    assert re.search(r"^Due for longest: \S+Z +next to be due: \S+Z$", text, re.MULTILINE)


def test_estimates_are_marked_for_people_and_named_for_programs(
    queue: Queue, gw: CliProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.many(20_000)
    sampling = importlib.import_module("gw_core.domain.reports.table_sample")
    monkeypatch.setattr(sampling, "COUNTED_PAGES", 150)
    monkeypatch.setattr(sampling, "SAMPLED_PAGES", 100)

    text = gw("stats", terminal=True).out

    assert re.search(r"^ready +~\d\d,\d{3}$", text, re.MULTILINE)
    assert re.search(r"^failed +~0\?$", text, re.MULTILINE)
    assert gw("stats", "--json").json["total"]["quality"] == "estimate"
    assert gw("stats", "--exact", "--json").json["total"] == {"count": 20_000, "quality": "exact"}
    assert gw("tasks", "--json").json[0]["quality"] == "estimate"


def test_watching_refreshes_until_interrupted(queue: Queue, gw: CliProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    queue.ready()
    rests: list[float] = []

    class Interrupted:
        """An event that is never set, and a user who leaves in the second pause."""

        def wait(self, seconds: float) -> None:
            rests.append(seconds)
            if len(rests) > 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(stats, "Event", Interrupted)

    ended = gw("stats", "--watch", "--interval", "5s", "--json")

    assert ended.code == 130
    assert rests == [5.0, 5.0]
    assert [json.loads(line)["total"]["count"] for line in ended.out.splitlines()] == [1, 1]


def test_queues_and_tasks_for_a_person(queue: Queue, gw: CliProgram) -> None:
    queue.ready("pay", queue_name="letters")
    queue.hold("letters", by="pool-3")
    queue.heartbeat("pool-3", tasks=["mail"])

    assert re.search(r"^letters +1 +1 +pool-3 .*pay", gw("queues", terminal=True).out, re.MULTILINE)
    assert re.search(r"^pay +1 +0 +0 +0 +0 +0 +none$", gw("tasks", terminal=True).out, re.MULTILINE)


@pytest.mark.parametrize(
    ("tasks", "words", "row", "record"),
    [
        pytest.param(["pay"], "pool-1", "pool-1\t1", (["pool-1"], 1), id="known"),
        pytest.param([], "none", "\t0", ([], 0), id="known by none"),
        pytest.param(None, "unknown", "\t", (None, None), id="unknown"),
    ],
)
def test_unknown_workers_of_a_task_differ_from_none(
    queue: Queue, gw: CliProgram, tasks: list[str] | None, words: str, row: str, record: tuple[Any, Any]
) -> None:
    queue.ready(task="pay")
    queue.heartbeat("pool-1", tasks=tasks)

    (found,) = gw("tasks", "--json").json

    assert (found["known_by"], found["workers"]) == record
    assert gw("tasks").out.splitlines()[1].split("\t", 8)[8] == row
    assert gw("tasks", terminal=True).out.splitlines()[1].endswith(f" {words}")


def test_a_schema_of_npm_alone_is_read(queue: Queue, gw: CliProgram) -> None:
    queue.one_of_each()
    queue.ready(queue_name="letters")
    queue.without_our_line()

    for arguments in COMMANDS.values():
        assert gw(*arguments, "--json").code == 0


def test_a_list_of_the_next_jobs_says_where_it_ends(queue: Queue, gw: CliProgram) -> None:
    queue.many(1_001)

    ended = gw("list", "state:ready", "--limit", "1000", "--after", "turn/999")

    assert "list all of them with --after 0" in ended.err
