"""Every command that changes something, with two shards: it asks once, before it changes either of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict
from support.cli_program import CliProgram, every_command
from support.jobs_in_states import Queue
from test_all_commands import CHANGING, everything, filled, path_of

# One file of many small tests, none of which a version of Python would change.
pytestmark = pytest.mark.once

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "running-workers.md"
UNREACHABLE = "postgres://127.0.0.1:1/nowhere"
ADDING = ("gw add", "gw cron run")
"""A job is added to one database."""

WITH_SUPERVISOR = ("gw run",)
"""tests/processes/test_shards.py tries it."""

Shards = dict[str, Queue]


@pytest.fixture
def shards(queue: Queue, second_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shards]:
    """Two databases with the same jobs, which the project's file names."""
    monkeypatch.delenv("DATABASE_URL")
    with Queue(second_database_url) as other:
        filled(queue, tmp_path)
        (tmp_path / "gone").mkdir()
        filled(other, tmp_path / "gone")
        write(tmp_path, eu=queue.url, us=other.url)
        yield {"eu": queue, "us": other}


def write(folder: Path, **shards: str) -> None:
    (folder / "gw.toml").write_text(f"shards = {json.dumps([f'{name}={url}' for name, url in shards.items()])}\n")


def states(shards: Shards) -> dict[str, Any]:
    return {name: everything(queue) for name, queue in shards.items()}


def changed(before: dict[str, Any], shards: Shards) -> set[str]:
    return {name for name, rows in states(shards).items() if rows != before[name]}


def options_of(line: str) -> set[str]:
    """The options of the command of a line, found in the table of commands."""
    return {option for each in every_command()[path_of(line)].params for option in each.opts}


def without_ids(line: str) -> str:
    """The same action for jobs that a condition chooses, if the command has conditions."""
    jobs = "state:waiting" if path_of(line) == "gw cancel" else "--all"
    return re.sub(r" \d+(?= |$)", f" {jobs}", line) if "--all" in options_of(line) else line


def names_ids(line: str) -> bool:
    return without_ids(line) != line or path_of(line) == "gw groups cancel"


LINES = [line for line in CHANGING if path_of(line) not in (*ADDING, *WITH_SUPERVISOR)]
ON_ALL = [each for each in dict.fromkeys(map(without_ids, LINES)) if not names_ids(each)]
ASKING = [each.replace(" --yes", "") for each in ON_ALL if "--yes" in options_of(each)]
OF_IDS = [each for each in LINES if names_ids(each)]
WITHOUT_ROWS = ("record-others", "grant", "revoke")
"""What these change is in the catalog."""


def test_every_command_that_uses_a_database_takes_shards() -> None:
    lacking = {
        name
        for name, command in every_command().items()
        for options in [{option for each in command.params for option in each.opts}]
        if "--connection" in options and "--shard" not in options
    }

    assert lacking == {"gw bench", "gw config show", "gw dev"}, "add the command to SHARDED, and for_each_shard to it"


def test_the_lines_have_every_command_that_asks() -> None:
    asking = {name for name, command in every_command().items() if any("--yes" in each.opts for each in command.params)}

    assert {path_of(each) for each in ASKING} == asking


def with_jobs(lines: list[str], shards: Shards) -> Iterator[str]:
    """Yield each line when every shard has jobs for it, whatever the lines before have done."""
    for line in lines:
        for queue in shards.values():
            queue.failed()
            queue.client.add("last", after=[queue.scheduled()])
        yield line


def test_a_command_acts_on_every_shard(gw: CliProgram, shards: Shards) -> None:
    for line in with_jobs(ON_ALL, shards):
        before = states(shards)
        agreed = "--yes" if "--yes" in options_of(line) and "--yes" not in line else ""

        ended = gw(*f"{line} {agreed}".split(), *(["--json"] if "--json" in options_of(line) else []))

        assert (ended.code in (0, 1), "Traceback" in ended.err) == (True, False), (line, ended.err)
        assert changed(before, shards) == (set() if line.split()[0] in WITHOUT_ROWS else {"eu", "us"}), line
        if "--json" in options_of(line):
            assert {each["shard"] for each in ended.json} == {"eu", "us"}, line


def test_it_asks_once_with_the_counts_of_all_shards_before_it_changes_one(gw: CliProgram, shards: Shards) -> None:
    for line in with_jobs(ASKING, shards):
        before = states(shards)

        declined = gw(*line.split(), typed="no\n")

        assert (declined.code, changed(before, shards)) == (1, set()), (line, declined.err)
        (question,) = [each for each in declined.err.split("Type yes") if "?" in each]
        assert re.search(r"\(eu [\d,]+.*, us [\d,]+.*\)\?", question), question
        for name, queue in shards.items():
            assert re.search(rf"^ *{name}: .* in {conninfo_to_dict(queue.url)['dbname']}@", question, re.MULTILINE)

        agreed = gw(*line.split(), typed="yes\n")

        assert agreed.err.count("Type yes") == 1
        assert changed(before, shards) == {"eu", "us"}, (line, agreed.err)


def test_without_a_terminal_it_changes_nothing(gw: CliProgram, shards: Shards) -> None:
    before = states(shards)

    for line in ASKING:
        ended = gw(*line.split(), stdin=b"yes\n")

        assert (ended.code, changed(before, shards)) == (2, set()), line
        assert "cannot ask for confirmation without a terminal; pass --yes" in ended.err, line


def test_a_preview_counts_in_every_shard_and_changes_nothing(gw: CliProgram, shards: Shards) -> None:
    before = states(shards)

    for line in (each for each in ASKING if "--dry-run" in options_of(each)):
        ended = gw(*line.split(), "--dry-run", "--json")

        assert (ended.code, changed(before, shards)) == (0, set()), (line, ended.err)
        assert {each["shard"] for each in ended.json} == {"eu", "us"}


def test_a_shard_that_cannot_be_reached_is_named_before_the_answer(
    gw: CliProgram, shards: Shards, tmp_path: Path
) -> None:
    write(tmp_path, asia=UNREACHABLE, **{name: queue.url for name, queue in shards.items()})
    for line in with_jobs(ASKING, shards):
        before = states(shards)

        ended = gw(*line.split(), typed="yes\n")

        named, question, _ = ended.err.partition("Type yes")
        assert ("gw: shard asia: " in named, "asia: nothing" in named, bool(question)) == (True, True, True), line
        assert (ended.code, changed(before, shards)) == (3, {"eu", "us"}), line


def test_job_ids_and_new_jobs_need_a_named_shard(gw: CliProgram, shards: Shards) -> None:
    # No worker stops the job that runs.
    waiting = shards["us"].client.add("last", after=[shards["us"].scheduled()]).id
    found = {"cancel 1 --timeout 0s": f"cancel {waiting}", "groups cancel 1": "groups cancel 5"}
    reasons = dict.fromkeys(OF_IDS, "each database counts its job ids separately")
    reasons |= {each: "this command needs a single database" for each in CHANGING if path_of(each) in ADDING}
    for line, reason in reasons.items():
        before = states(shards)

        rejected = gw(*line.split())

        assert (rejected.code, changed(before, shards)) == (2, set()), line
        assert rejected.err == f"gw: {reason}; add --shard eu or --shard us\n"
        assert gw(*found.get(line, line).split(), "--shard", "us").code == 0, line
        assert changed(before, shards) == {"us"}, line


# -- what a person reads, and the exit code --------------------------------------------------------------------------


def test_a_person_sees_which_job_is_in_which_shard(gw: CliProgram, shards: Shards) -> None:
    shown = gw("retry", "state:failed", "--yes", terminal=True)

    assert shown.out.splitlines() == ["eu: Retried job 2 (mail)", "us: Retried job 2 (mail)"]
    assert shown.err == ""


def test_lines_for_a_program_have_one_header(gw: CliProgram, shards: Shards) -> None:
    assert [line.split("\t")[:3] for line in gw("retry", "state:failed", "--yes").out.splitlines()] == [
        ["shard", "id", "task"],
        ["eu", "2", "mail"],
        ["us", "2", "mail"],
    ]


def test_the_question_is_that_of_the_manual(gw: CliProgram, shards: Shards) -> None:
    (shown,) = re.findall(r"```text\n(Retry .*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    for task in ("mail", "slow"):
        shards["eu"].failed(task)
    shards["us"].failed("mail")

    asked = gw("retry", "state:failed", typed="no\n").err.partition("continue.")[0] + "continue."

    assert without_values(asked) == without_values(shown)


def without_values(text: str) -> list[str]:
    """The words of a question, without its numbers and the names of databases."""
    return re.sub(r"\S+@\S+", "DATABASE", re.sub(r"\d[\d,]*", "N", text)).split()


def test_what_matches_in_one_shard_alone_is_found(gw: CliProgram, shards: Shards) -> None:
    shards["us"].failed("slow")
    before = states(shards)

    ended = gw("retry", "task:slow", typed="yes\n")

    assert (ended.code, changed(before, shards)) == (0, {"us"})
    assert "Retry 1 job (us 1, eu 0)?" in ended.err
    assert "shard eu: no job matches; nothing was retried" in ended.err


def test_nothing_matched_if_it_is_so_in_every_shard(gw: CliProgram, shards: Shards) -> None:
    ended = gw("retry", "task:unknown", "--yes")

    assert (ended.code, ended.err.count("no job matches; nothing was retried")) == (6, 2)


def test_a_shard_that_cannot_be_reached_may_have_what_was_not_found(
    gw: CliProgram, shards: Shards, tmp_path: Path
) -> None:
    write(tmp_path, eu=shards["eu"].url, asia=UNREACHABLE)

    assert gw("retry", "task:unknown", "--yes").code == 3


def test_wrong_input_is_reported_once(gw: CliProgram, shards: Shards) -> None:
    before = states(shards)

    for line, message in {
        "reschedule --all --yes": "nothing to change; give --run-at,",
        "pause nothing": "'nothing' cannot be paused; give task:NAME",
        "count --after 3": "--after",
        "list --after 3": "--after needs a single database; add --shard eu or --shard us",
    }.items():
        ended = gw(*line.split())

        assert (ended.code, changed(before, shards), len(ended.err.splitlines())) == (2, set(), 1), ended.err
        assert message in ended.err
        assert "shard eu:" not in ended.err


def test_an_unknown_shard_is_rejected(gw: CliProgram, shards: Shards) -> None:
    ended = gw("retry", "2", "--shard", "asia")

    assert (ended.code, "--shard: give each database once, as NAME=URL" in ended.err) == (2, True)


def test_a_named_shard_is_asked_about_alone(gw: CliProgram, shards: Shards) -> None:
    before = states(shards)

    ended = gw("retry", "state:failed", "--shard", "us", typed="yes\n")

    assert "Retry 1 job (us 1)?" in ended.err
    assert changed(before, shards) == {"us"}


def test_a_connection_still_names_one_database(gw: CliProgram, shards: Shards) -> None:
    before = states(shards)

    assert gw("retry", "2", "--connection", shards["us"].url, "--json").json[0].keys() >= {"id", "task", "result"}
    assert changed(before, shards) == {"us"}


def test_an_interrupted_action_names_the_shards_where_nothing_was_done(
    gw: CliProgram, shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = states(shards)

    def interrupt(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gw_cli.bulk_command.Answer.take", interrupt)
    ended = gw("retry", "state:failed", typed="yes\n")

    assert (ended.code, changed(before, shards)) == (130, {"eu"})
    assert "Nothing was done in us." in ended.err
