"""JobSpec as a value: what it is equal to, and what copies of it hold."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from gw_core import JobKeyMode, JobSpec
from gw_core.errors import InvalidJobError

SPEC = JobSpec(task="mail", payload=(1, 2), queue_name="q", job_key="k", job_key_mode=JobKeyMode.PRESERVE_RUN_AT)


def test_fields_that_were_not_given_have_their_defaults() -> None:
    bare = JobSpec(task="mail")

    assert {each.name: getattr(bare, each.name) for each in fields(bare)} == {
        "task": "mail",
        "payload": None,
        "queue_name": None,
        "run_at": None,
        "max_attempts": None,
        "job_key": None,
        "job_key_mode": JobKeyMode.REPLACE,
        "priority": None,
        "flags": (),
        "after": None,
        "on_failure": "hold",
        "unique_for": None,
        "expires_at": None,
    }


def test_equal_fields_make_equal_specs() -> None:
    assert JobSpec(task="mail", queue_name=None, priority=0) == JobSpec(task="mail", priority=0) != JobSpec(task="mail")
    assert hash(JobSpec(task="mail", flags=["a"])) == hash(JobSpec(task="mail", flags=("a",)))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, replace, lambda spec: pickle.loads(pickle.dumps(spec))])
def test_a_copy_equals_the_spec(copied: Callable[[JobSpec], JobSpec]) -> None:
    assert copied(SPEC) == SPEC
    assert copied(JobSpec(task="mail")) == JobSpec(task="mail")


def test_another_payload_leaves_the_rest() -> None:
    assert SPEC.with_payload(None) == replace(SPEC, payload=None)
    assert SPEC.payload == (1, 2)


def test_a_replaced_field_is_checked() -> None:
    with pytest.raises(InvalidJobError, match="priority"):
        replace(SPEC, priority=40_000)


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        SPEC.priority = 1  # type: ignore[misc]
