"""A job as a value: decoded fields, names that are the same everywhere, and nothing decoded on the way to its task."""

from __future__ import annotations

import ast
import importlib
import inspect
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.project_files import project_files
from support.queue_fixture import QueueFixture
from support.task_builders import a_job
from test_public_names import MODULES

from gw_cli.job_files import NAMES as FILE_FIELDS
from gw_cli.records import JOBS
from gw_core import CronItem, Job, JobSpec
from gw_core.front_ends import job_fields
from gw_core.operations import EndedAttempt

CORE = Path(__file__).parents[2] / "gw_core"
ROAD = ("worker", "postgres", "execution", "maintenance")
"""The folders of a job's way to its task and back."""

WORDS_OF_LISTS = {"state"}
"""What depends on the clock, and so is not a field of a job."""

ALSO_IN_LOGS = {"job_id", "attempt", "worker_id", "thread_name"}


def test_a_job_has_decoded_values(site: QueueFixture) -> None:
    before = datetime.now(UTC) - timedelta(minutes=5)
    added = site.client.add("mail", {"to": ["a", "b"]}, queue_name="q", job_key="k", flags=["x", "y"])
    job = site.client.jobs.get(added.id)  # type: ignore[union-attr]

    assert job is not None
    assert (job.task, job.queue_name, job.job_key) == ("mail", "q", "k")
    assert (job.payload, set(job.flags)) == ({"to": ["a", "b"]}, {"x", "y"})
    assert before < job.created_at <= job.run_at + timedelta(seconds=1)
    assert (job.run_at.tzinfo, job.locked_at, job.started_at) == (UTC, None, None)


def test_a_job_that_was_read_without_its_payload_has_none() -> None:
    assert (a_job(text="").payload, a_job(text="").payload_json) == (None, "")


def test_a_payload_cannot_be_changed_through_a_job() -> None:
    job = a_job({"n": 1})
    job.payload["n"] = 2

    assert job.payload == {"n": 1}


def test_a_repr_shows_the_values_under_their_public_names() -> None:
    shown = repr(a_job({"card": "4111"}, _flags='{"x": true}'))

    assert "4111" not in shown
    assert "flags=('x',)" in shown
    assert "run_at=datetime.datetime(2023, 11, 14," in shown


# -- one name for each field -------------------------------------------------------------------------------------------


# What a job has to do with other ones that were added.
RELATIONS = {"after", "on_failure", "unique_for"}


def names_of(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_a_job_names_its_fields_as_its_specification_does() -> None:
    given = {field.name for field in fields(JobSpec)}

    # A job does not keep how it was added.
    assert given - names_of(Job) == {"job_key_mode", *RELATIONS}
    assert given - names_of(CronItem) == {"run_at", "expires_at", "flags", *RELATIONS}
    assert {"task", "queue_name", "job_key", "max_attempts", "payload"} <= names_of(EndedAttempt)


def test_commands_and_files_and_logs_name_the_fields_of_a_job_alike() -> None:
    assert set(JOBS.keys) - WORDS_OF_LISTS <= names_of(Job)
    assert set(FILE_FIELDS) == {field.name for field in fields(JobSpec)}
    assert set(job_fields(a_job())) - ALSO_IN_LOGS <= names_of(Job)


@pytest.mark.parametrize("module", [*MODULES, "gw_core.testing"])
def test_no_public_time_is_a_number(module: str) -> None:
    public = importlib.import_module(module)
    kinds = {name: getattr(public, name) for name in public.__all__}

    assert [
        f"{name}.{member}"
        for name, kind in kinds.items()
        if inspect.isclass(kind)
        for member in names_of(kind)
        if member.endswith("_epoch")
    ] == []


# -- what the road costs -----------------------------------------------------------------------------------------------


def test_no_payload_is_decoded_on_the_way_to_its_task() -> None:
    decoded = [
        f"{path.relative_to(CORE)}:{node.lineno}"
        for folder in ROAD
        for path in project_files(CORE / folder, "*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "payload" and ast.unparse(node.value).endswith("job")
    ]

    assert decoded == []
