"""The task that `@task` makes: callable as its function, and a maker of jobs."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import pydantic
import pytest
from support.task_builders import a_job, attempt, write

from gw_core import Client, GiveUp, JobContext, JobSpec, TaskRegistry, cron, task
from gw_core.errors import InvalidJobError
from gw_core.front_ends import Failed, TaskLoadError, load_folder


@dataclass
class Charge:
    amount: int


@task("billing/charge", max_attempts=3, queue_name="billing", priority=-1, flags=["eu"], timeout=60)
def charge(payload: Charge) -> int:
    """Charge a card."""
    return payload.amount


# -- as a function -------------------------------------------------------------------------------------------------


def test_a_task_is_called_as_its_function_and_has_its_names() -> None:
    assert charge(Charge(amount=5)) == 5
    assert (charge.__name__, charge.__doc__, charge.__module__) == ("charge", "Charge a card.", __name__)
    assert repr(charge) == "<Task billing/charge>"


def test_a_task_is_pickled_and_copied_by_its_name_as_functions_are() -> None:
    assert pickle.loads(pickle.dumps(charge)) is charge
    assert copy.deepcopy(charge) is charge


@task("fetch")
async def fetch(payload: str) -> str:
    return payload


def test_frameworks_await_the_task_of_an_async_function() -> None:
    is_async = inspect.iscoroutinefunction if sys.version_info >= (3, 12) else asyncio.iscoroutinefunction

    assert is_async(fetch)
    assert not is_async(charge)
    assert not is_async(functools.wraps(fetch)(lambda payload: asyncio.run(fetch(payload))))
    assert asyncio.run(fetch("page")) == "page"


class Mailer:
    def __init__(self) -> None:
        self.sent: list[str] = []

    @task("mail")
    def send(self, payload: str) -> None:
        self.sent.append(payload)


def test_a_method_is_bound_to_its_object() -> None:
    mailer, tasks = Mailer(), TaskRegistry()
    mailer.send("direct")
    tasks.register("mail", mailer.send)
    attempt(tasks.get("mail"), a_job("as a job"))

    assert mailer.sent == ["direct", "as a job"]


# -- jobs ----------------------------------------------------------------------------------------------------------


def test_the_job_of_a_task_has_its_options_and_those_of_the_call() -> None:
    assert charge.job(Charge(amount=5)) == JobSpec(
        task="billing/charge",
        payload=Charge(amount=5),
        max_attempts=3,
        queue_name="billing",
        priority=-1,
        flags=["eu"],
    )
    changed = charge.job(Charge(amount=5), priority=2, run_at=timedelta(minutes=1), flags=())
    assert (changed.priority, changed.run_at, changed.flags, changed.max_attempts) == (2, timedelta(minutes=1), (), 3)


def test_slots_of_a_call_replace_the_queue_of_the_task() -> None:
    @task(slots="tenant:{amount}:1")
    def limited(payload: Charge) -> None: ...

    assert charge.job(Charge(amount=5), slots="api:1").queue_name == "api:0"
    assert limited.job(Charge(amount=7)).queue_name == "tenant:7:0"
    assert limited.job(Charge(amount=7), queue_name="own").queue_name == "own"


class Order(pydantic.BaseModel):
    lines: list[int]


@pytest.mark.parametrize(
    ("annotation", "payload", "reason"),
    [
        (Charge, {"amount": "five"}, r"does not fit Charge: Expected `int`, got `str` - at `\$.amount`"),
        (Charge, Charge(amount="five"), r"at `\$.amount`"),  # type: ignore[arg-type]
        (Charge, None, "missing required field `amount`"),
        (Order, Charge(amount=5), r"Field required - at `\$.lines`"),
        (list[Order], [{"lines": [1, "x"]}], r"at `\$\[0\].lines\[1\]`"),
        (Charge, {"amount": object()}, "cannot be written as JSON"),
    ],
)
def test_a_payload_that_the_task_could_not_read_is_rejected_when_the_job_is_made(
    annotation: Any, payload: Any, reason: str
) -> None:
    def function(payload: Any) -> None: ...

    function.__annotations__["payload"] = annotation

    with pytest.raises(InvalidJobError, match=reason):
        task("orders")(function).job(payload)


def test_a_job_without_payload_of_an_optional_type_stores_null() -> None:
    @task("orders")
    def optional(payload: Order | None) -> None:
        assert payload is None

    tasks = TaskRegistry()
    tasks.register("orders", optional)

    assert attempt(tasks.get("orders"), a_job(text=_text(optional.job(None)))).seconds >= 0
    assert _text(optional.job(None)) == "null"
    assert _text(charge.job({"amount": 5})) == '{"amount":5}'  # type: ignore[call-overload]


def _text(spec: JobSpec) -> str:
    from gw_core.front_ends import encode_payload

    return encode_payload(spec.payload)


@pytest.mark.parametrize(
    "options",
    [
        *({"max_attempts": 0}, {"priority": "high"}, {"queue_name": ""}, {"slots": "api"}, {"flags": "eu"}),
        *({"retry": {int: 5}}, {"retry": {ValueError: "soon"}}, {"retry": ValueError}),
    ],
    ids=str,
)
def test_a_wrong_option_is_rejected_at_the_decorator(options: Any) -> None:
    with pytest.raises(TaskLoadError):
        task(**options)(lambda payload: None)


# -- identifiers ---------------------------------------------------------------------------------------------------


WEEKLY = """
from gw_core import task

@task
def weekly(payload, context):
    context.add(monthly)

@task
def monthly(payload): ...
"""


def imported_from(path: Path) -> dict[str, Any]:
    """Import a file as a program does that adds jobs: not as the loader of tasks."""
    module: dict[str, Any] = {"__name__": "reports.weekly"}
    exec(compile(path.read_text(), str(path), "exec"), module)  # noqa: S102 - under another name than the loader's
    return module


def test_a_function_named_like_its_file_has_no_identifier_until_a_worker_loads_it(tmp_path: Path) -> None:
    path = write(tmp_path / "tasks" / "reports" / "weekly.py", WEEKLY)
    module = imported_from(path)

    assert module["monthly"].identifier == "monthly"
    with pytest.raises(InvalidJobError, match=r'weekly has no identifier here: .*@task\("weekly"\)'):
        module["weekly"].job({})

    load_folder(tmp_path / "tasks", strict=True)
    assert module["weekly"].job({}).task == "reports/weekly"


def test_a_function_is_marked_also_where_nothing_holds_the_task(tmp_path: Path) -> None:
    path = write(
        tmp_path / "tasks" / "mail.py",
        "from gw_core import task\n"
        "def send(payload): ...\ndef run(payload): ...\n"
        "task('mail/send', timeout=3)(send)\ntask('mail/later', max_attempts=2)(send)\ntask(timeout=4)(run)\n",
    )

    registry = load_folder(tmp_path / "tasks", strict=True).registry

    assert {each.identifier: each.timeout for each in registry} == {
        "mail": timedelta(seconds=4),
        "mail/later": None,
        "mail/send": timedelta(seconds=3),
    }
    with pytest.raises(InvalidJobError, match=r"a task under 2 identifiers \(mail/send, mail/later\)"):
        Client("postgres://localhost/none").add(imported_from(path)["send"])


# -- other decorators ----------------------------------------------------------------------------------------------


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        CALLS.append(function.__name__)
        return function(*args)

    return wrapper


class Counted:
    """A decorator that is a class, as libraries write them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.inner = function

    def __call__(self, *args: Any) -> Any:
        CALLS.append("counted")
        return self.inner(*args)


def tagged(function: Any) -> Any:
    """A decorator that leaves something on the function."""
    function.tag = "eu"
    return function


CALLS: list[str] = []


@pytest.mark.parametrize("other", [logged, Counted, tagged])
@pytest.mark.parametrize("is_outer", [True, False], ids=["above @task", "below @task"])
def test_the_options_of_a_task_survive_other_decorators_in_either_order(
    other: Callable[[Any], Any], is_outer: bool
) -> None:
    def function(payload: Charge) -> None:
        CALLS.append("called")

    mark = task("kept", timeout=7, max_attempts=2, result=True)
    decorated = cron("0 8 * * *")(other(mark(function)) if is_outer else mark(other(function)))
    tasks = TaskRegistry()
    tasks.register("kept", decorated)
    found = tasks.get("kept")
    CALLS.clear()
    attempt(found, a_job({"amount": 5}))

    assert found is not None
    assert (found.timeout, found.history.result) == (timedelta(seconds=7), True)
    assert [*{"logged": ["function"], "Counted": ["counted"], "tagged": []}[other.__name__], "called"] == CALLS
    assert [pattern for _, pattern, _ in tasks.crontab_sources] == ["0 8 * * *"]


def test_a_task_below_another_decorator_is_found_in_a_folder(tmp_path: Path) -> None:
    write(
        tmp_path / "mail.py",
        "import functools\nfrom gw_core import task\n"
        "def twice(function):\n    return functools.wraps(function)(lambda payload: function(function(payload)))\n"
        "@twice\n@task('mail/send', timeout=7)\ndef send(payload: int):\n    return payload * 2\n",
    )
    found = load_folder(tmp_path, strict=True).registry.get("mail/send")

    assert found is not None
    assert found.timeout == timedelta(seconds=7)
    assert found.invoke(a_job(3), None) == 12  # type: ignore[arg-type]


# -- signatures ----------------------------------------------------------------------------------------------------


class OwnContext(Protocol):
    job: Any


class MoreContext(JobContext): ...


def two_values(a: int, b: str) -> None: ...
def a_list_second(a: int, b: list[int]) -> None: ...
def a_model_second(a: int, context: Order) -> None: ...
def unbound(self, payload: Charge) -> None: ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (two_values, "second parameter b would get the JobContext, but is annotated as str"),
        (a_list_second, "second parameter b would get the JobContext"),
        (a_model_second, "second parameter context would get the JobContext"),
        (unbound, "a method that is not bound to an object"),
    ],
)
def test_a_signature_that_would_be_misread_is_rejected(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(TaskLoadError, match=reason):
        TaskRegistry().register("mail", function)


@pytest.mark.parametrize(
    "annotation", [JobContext, "JobContext", MoreContext, OwnContext, Any, object, JobContext | None]
)
def test_what_a_context_fits_is_accepted(annotation: Any) -> None:
    def function(payload: Any, tools: Any) -> None: ...

    function.__annotations__["tools"] = annotation
    TaskRegistry().register("mail", function)


# -- retry rules ---------------------------------------------------------------------------------------------------


class RateLimitedError(Exception): ...


RULES: dict[type[BaseException], Any] = {
    PermissionError: GiveUp,
    RateLimitedError: lambda attempt: 10 * attempt,
    OSError: timedelta(minutes=5),
}


@pytest.mark.parametrize(
    ("error", "delay", "permanent"),
    [
        (PermissionError("no"), None, True),
        (ConnectionError("reset"), timedelta(minutes=5), False),
        (RateLimitedError("slow down"), timedelta(seconds=30), False),
        (ValueError("a bug"), None, False),
    ],
    ids=["give up", "a delay of its base class", "a function", "no rule"],
)
def test_the_rules_of_a_task_decide_when_a_failure_is_tried_again(
    error: Exception, delay: timedelta | None, permanent: bool
) -> None:
    tasks = TaskRegistry()

    @tasks.task("fails", retry=RULES)
    def fails() -> None:
        raise error

    outcome = attempt(tasks.get("fails"), a_job(attempts=3))

    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.delay, outcome.permanent) == (error, delay, permanent)
    assert outcome.message.startswith(f"{type(error).__name__}: {error}")
    assert ("(not retried after attempt 3 of 25)" in outcome.message) is permanent
