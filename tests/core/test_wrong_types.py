"""A public method of a client that gets a value of a wrong type raises one clear error, before anything is sent."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Iterator
from datetime import timedelta
from typing import Any, Final

import pytest
from test_one_client import NOWHERE, methods

from gw_core import AsyncClient, Client, Job, JobSpec
from gw_core.errors import InvalidInputError
from gw_core.operations import ActionResult

JOB: Final = Job(7, "mail", "{}", 0, 25, 0, 0.0, 0.0, 0.0, 0, None, None, None, None, None, None, None)

EXAMPLES: Final[dict[str, Any]] = {
    "int": 7,
    "str": "mail",
    "Job": JOB,
    "JobSpec": JobSpec(task="mail"),
    "Which": [7],
    "Iterable[JobSpec]": [JobSpec(task="mail")],
    "Sequence[str]": ["gw-host-1"],
    "CleanupTarget | str": "failed-jobs",
    "RoleKind | str": "viewer",
    "str | JobSpec | Any": "mail",
    "timedelta | None": timedelta(days=7),
    "str | PauseTarget": "task:mail",
}
"""A value of each type that a call cannot do without; a new type needs a line here."""

ANYTHING: Final = {"payload", "items"}
"""Parameters that take a value of any type."""


def calls(client: Any) -> Iterator[tuple[str, Any, inspect.Parameter, list[Any], dict[str, Any]]]:
    """Yield each parameter of each method, with a call of the method in which its value is to be added."""
    for name, method in methods(client).items():
        if name == "sharded":  # makes clients
            continue
        parameters = inspect.signature(method).parameters.values()
        needed = [each for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
        for each in parameters:
            if each.name in ANYTHING or each.kind is each.VAR_KEYWORD:
                continue
            others = [other for other in needed if other is not each]
            positional = [EXAMPLES[other.annotation] for other in others if other.kind is other.VAR_POSITIONAL]
            keywords = {
                other.name: EXAMPLES[other.annotation] for other in others if other.kind is not other.VAR_POSITIONAL
            }
            yield name, method, each, positional, keywords


async def carried_out(returned: Any) -> None:
    if isinstance(returned, Awaitable):
        await returned
    elif isinstance(returned, AsyncIterator):
        async for _ in returned:
            pass
    elif isinstance(returned, Iterator):
        list(returned)


def problem_of(method: Any, positional: list[Any], keywords: dict[str, Any]) -> str | None:
    """Return what a call does that does not reject its arguments as it should."""
    try:
        asyncio.run(carried_out(method(*positional, **keywords)))
    except InvalidInputError:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("number", [0, -1])
def test_a_page_or_a_batch_of_nothing_is_rejected(kind: Any, number: int) -> None:
    found = [each for each in calls(kind(NOWHERE)) if each[2].name in ("limit", "size")]

    assert len(found) > 5
    for name, method, parameter, positional, keywords in found:
        assert problem_of(method, positional, {**keywords, parameter.name: number}) is None, name


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("wrong", [object(), ActionResult(), 1j, b"mail"], ids=["object", "job", "complex", "bytes"])
def test_a_value_of_a_wrong_type_is_rejected(kind: Any, wrong: object) -> None:
    client = kind(NOWHERE)
    problems = []
    for name, method, parameter, positional, keywords in calls(client):
        is_positional = parameter.kind is parameter.VAR_POSITIONAL
        arguments = [*positional, wrong] if is_positional else positional
        named = keywords if is_positional else {**keywords, parameter.name: wrong}
        if (problem := problem_of(method, arguments, named)) is not None:
            problems.append(f"{name}({parameter.name}): {problem}")

    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda client: client.jobs.get(JOB), "job_id must be a whole number, not Job; give its id"),
        (lambda client: client.result(JOB), "Job is not the id of a job; ids are whole numbers from 1"),
        (lambda client: client.jobs.complete([JOB]), "Job is not the id of a job; ids are whole numbers from 1"),
        (lambda client: client.jobs.restore(ActionResult()), "job must be a Job, not ActionResult"),
        (lambda client: client.jobs.in_batches("5"), "size must be a whole number, not str"),
        (lambda client: client.jobs.get(), "name one job: give either its id or its key"),
        (lambda client: client.groups.cancel(7, "8"), "ids must be a whole number, not str"),
        (lambda client: client.workers.unlock("gw-host-1"), "worker_ids must be a list, not str"),
        (lambda client: client.workers.unlock([7]), "each of worker_ids must be a text, not int"),
        (lambda client: client.remove("key", by=True), "by must be a text, not bool"),
        (lambda client: client.queues.list(limit=True), "limit must be a whole number, not bool"),
        (lambda client: client.add("mail", after=JOB.id), "after takes a list of jobs or of their ids; put the one"),
    ],
)
def test_the_error_says_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        call(Client(NOWHERE))

    assert str(raised.value).startswith(message)
