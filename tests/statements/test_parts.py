"""What several statements say alike stands in one part, and is in its place when a statement is run."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from support.project_files import project_files

from gw_core.postgres.connection.statements import query, sql_folder, sql_text

QUERIES = Path(str(sql_folder()), "queries")
STATEMENTS = sorted(path.stem for path in QUERIES.glob("*.sql"))


def included_in(path: Path) -> list[str]:
    return re.findall(r"\\ir (?:parts/)?(\w+)\.sql", path.read_text("utf-8"))


@pytest.mark.parametrize("name", STATEMENTS)
def test_nothing_is_left_to_be_filled_in(name: str) -> None:
    text = query(name, "jobs", SELECTION="true")

    assert "\\" not in text.replace("'\\u0000'", "")
    assert re.findall(r"(?<!:):[A-Z]\w*", text) == []


STEPS = {"near_picks", "far_picks", "claim_report"}
"""Steps of claim_jobs.sql, which is too long to be followed in one piece."""


def test_every_part_says_what_is_needed_in_two_places_or_is_a_step_of_a_long_statement() -> None:
    uses = Counter(name for path in project_files(QUERIES, "*.sql") for name in included_in(path))

    assert {path.stem for path in QUERIES.glob("parts/*.sql") if uses[path.stem] < 2} == STEPS


def test_a_part_stands_where_it_is_included_and_as_far_in() -> None:
    part = (QUERIES / "parts" / "state_of_job.sql").read_text("utf-8").splitlines()[1:]

    lines = sql_text("queries/find_jobs").splitlines()

    first = lines.index(f"  {part[0]}")
    assert lines[first : first + len(part)] == [f"  {line}" for line in part]


def test_a_caller_replaces_the_values_of_variables() -> None:
    ours, theirs = query("sweep_delete", "jobs"), query("sweep_delete", "jobs", WORKERS="_private_workers")

    assert 'delete from "jobs"._private_gw_workers' in ours
    assert theirs == ours.replace("_private_gw_workers", "_private_workers")


def test_a_caller_leaves_out_the_lines_of_a_condition() -> None:
    whole, short = query("complete_jobs", "jobs"), query("complete_jobs", "jobs", RELEASES="false")

    assert '  update "jobs"._private_job_queues as queues' in whole.splitlines()
    assert "_private_job_queues" not in short
    assert "_private_gw_history" not in whole
    assert "_private_gw_history" in query("complete_jobs", "jobs", KEEPS="true")


@pytest.mark.parametrize("name", ["complete_jobs", "fail_jobs", "return_jobs"])
def test_every_form_of_a_settling_statement_is_filled_in(name: str) -> None:
    for releases, keeps in product(("true", "false"), repeat=2):
        text = query(name, "jobs", RELEASES=releases, KEEPS=keeps)

        assert re.findall(r"\\|(?<!:):[A-Z]\w*", text) == []


def test_a_name_counts_from_where_it_is_said() -> None:
    text = " ".join(query("claim_jobs", "jobs").split())

    unqueued, queued = (
        text.index("unqueued_priorities (priority, since)"),
        text.index(" queued_priorities (priority, since)"),
    )
    assert "job_queue_id is null" in text[unqueued:queued]
    assert "is not null and jobs.priority" not in text[unqueued:queued]
    assert "job_queue_id is not null" in text[queued : text.index("near as materialized")]


# -- every deletion ------------------------------------------------------------------------------------------------

RECORDED_ELSEWHERE = {
    "migrations/parts/operator_functions": "the shared function: action_complete.sql records what it deletes",
    "migrations/parts/remove_job": "the shared function: record_removed.sql records what it deletes",
    "queries/check_permissions": "deletes nothing",
}


def test_every_statement_that_deletes_jobs_can_move_them_to_history() -> None:
    deletes = re.compile(r"^[^-]*\bdelete from :GRAPHILE_WORKER_SCHEMA\._private_jobs\b", re.MULTILINE)
    folder = Path(str(sql_folder()))
    paths = [path.relative_to(folder).with_suffix("").as_posix() for path in project_files(folder, "*.sql")]
    deleting = [path for path in paths if deletes.search((folder / f"{path}.sql").read_text("utf-8"))]
    texts = {path: sql_text(path, {"RECORDS": "true", "KEEPS": "true"}) for path in deleting}

    unrecorded = {
        path for path, text in texts.items() if "insert into :GRAPHILE_WORKER_SCHEMA._private_gw_history" not in text
    }
    assert unrecorded == set(RECORDED_ELSEWHERE)
