"""What a task is called with: its payload as annotated, and its context."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest
from pydantic.alias_generators import to_camel
from support.task_builders import run

from gw_core import Client, CronRun, JobContext, TaskRegistry
from gw_core.errors import InvalidJobError, PayloadError
from gw_core.front_ends import Completed, Failed, TaskLoadError, encode_payload
from gw_core.testing import inline, perform


@dataclass
class Mail:
    to: str
    at: datetime | None = None


class MailDict(TypedDict):
    to: str


class MailStruct(msgspec.Struct):
    to: str


class MailModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    to: str
    at: datetime | None = None


@pydantic.dataclasses.dataclass
class MailPydanticDataclass:
    to: str


class StrictStruct(msgspec.Struct, forbid_unknown_fields=True):
    to: str


class StrictModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    to: str


class Raw(pydantic.BaseModel):
    data: bytes


class Number(pydantic.BaseModel):
    value: float


class Even(pydantic.BaseModel):
    number: int

    @pydantic.field_validator("number")
    @classmethod
    def even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd today")
        return value


class Colour(Enum):
    RED = "red"


def got(function: Callable[[list[Any]], Callable[..., object]], payload: object = None, **how: Any) -> Any:
    """What the function that is made around a list put into it when it was run."""
    seen: list[Any] = []
    outcome = run(function(seen), payload, **how)
    assert isinstance(outcome, Completed), outcome
    (only,) = seen
    return only


def received(annotation: object, payload: object = None, **how: Any) -> Any:
    def around(seen: list[Any]) -> Callable[..., object]:
        def task(payload: Any) -> None:
            seen.append(payload)

        task.__annotations__["payload"] = annotation
        return task

    return got(around, payload, **how)


def refusal(annotation: object, payload: object = None, **how: Any) -> str:
    def task(payload: Any) -> None:
        raise AssertionError("called with a payload that does not fit")

    task.__annotations__["payload"] = annotation
    outcome = run(task, payload, **how)
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, PayloadError)
    assert outcome.permanent is outcome.error.permanent
    return outcome.message


# -- plain JSON -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("payload", [{"a": [1, 2.5, None, True]}, [], "text", 7, None])
@pytest.mark.parametrize("annotation", [Any, object, "Any"], ids=str)
def test_a_task_that_asks_for_nothing_gets_plain_json(annotation: object, payload: object) -> None:
    text = msgspec.json.encode(payload).decode()

    assert received(annotation, text=text) == payload


def test_an_unannotated_parameter_gets_plain_json() -> None:
    assert got(lambda seen: lambda payload: seen.append(payload), {"a": 1}) == {"a": 1}


def test_dict_and_list_are_checked() -> None:
    assert received(dict, {"a": 1}) == {"a": 1}
    assert received(list, [1]) == [1]
    assert "Expected `object`, got `array`" in refusal(dict, [1])


def test_json_that_postgresql_keeps_and_the_fast_decoder_does_not_is_read_all_the_same() -> None:
    assert received(Any, text='{"big": 1e400}') == {"big": math.inf}
    assert received(Any, text='["\\ud800"]') == ["\ud800"]


def test_a_payload_that_is_nested_without_end_fails_the_attempt() -> None:
    assert "cannot be read" in refusal(Any, text="[" * 100_000 + "]" * 100_000)


# -- typed ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        pytest.param(Mail, Mail("home"), id="dataclass"),
        pytest.param(MailDict, {"to": "home"}, id="TypedDict"),
        pytest.param(MailStruct, MailStruct("home"), id="Struct"),
        pytest.param(MailModel, MailModel(to="home"), id="pydantic model"),
        pytest.param(MailPydanticDataclass, MailPydanticDataclass("home"), id="pydantic dataclass"),
        pytest.param(Mapping[str, str], {"to": "home"}, id="Mapping"),
        pytest.param(Mail | None, Mail("home"), id="optional"),
        pytest.param("Mail", Mail("home"), id="as text"),
        pytest.param("list[Mail] | Mail", Mail("home"), id="expression as text"),
        pytest.param(Annotated[Mail, "whatever"], Mail("home"), id="Annotated"),
    ],
)
def test_the_annotation_decides_what_a_payload_becomes(annotation: object, expected: object) -> None:
    assert received(annotation, {"to": "home"}) == expected


def test_lists_of_models_are_converted_item_by_item() -> None:
    payload = [{"to": "home", "at": "2026-01-02T03:04:05Z"}]

    (model,) = received(list[MailModel], payload)
    (mail,) = received(list[Mail], payload)

    assert model.at == mail.at == datetime.fromisoformat("2026-01-02T03:04:05+00:00")


def test_a_class_defined_beside_the_task_in_a_function_is_found() -> None:
    def around(seen: list[Any]) -> Callable[..., object]:
        @dataclass
        class Local:
            to: str

        def task(payload: Local) -> None:
            seen.append((payload, Local))

        return task

    payload, kind = got(around, {"to": "home"})
    assert payload == kind("home")


def test_annotations_of_other_parameters_are_not_resolved() -> None:
    def around(seen: list[Any]) -> Callable[..., object]:
        def task(payload: Mail, context: NobodyDefinesThis) -> NorThis:  # type: ignore[name-defined]  # noqa: F821
            seen.append(payload)

        return task

    assert got(around, {"to": "home"}) == Mail("home")


@pytest.mark.parametrize(
    ("annotation", "payload", "reason"),
    [
        pytest.param(Mail, {}, "does not fit Mail: Object missing required field `to`", id="dataclass, missing"),
        pytest.param(Mail, {"to": 1}, "Expected `str`, got `int` - at `$.to`", id="dataclass, type"),
        pytest.param(MailDict, {}, "does not fit MailDict: Object missing required field `to`", id="TypedDict"),
        pytest.param(MailModel, {}, "does not fit MailModel: Field required - at `$.to`", id="pydantic, missing"),
        pytest.param(MailModel, {"to": 1}, "valid string - at `$.to`", id="pydantic, type"),
        pytest.param(list[MailModel], [{"to": 1}], "valid string - at `$[0].to`", id="pydantic in a list"),
        pytest.param(Mail, None, "Object missing required field `to`", id="empty"),
    ],
)
def test_a_payload_that_does_not_fit_fails_the_attempt_naming_the_field(
    annotation: object, payload: object, reason: str
) -> None:
    assert reason in refusal(annotation, payload)


@pytest.mark.parametrize(
    "annotation",
    [MailModel, list[MailModel], Mail, Colour, Literal["red"], list[Colour], Mail | int, MailPydanticDataclass],
    ids=str,
)
@pytest.mark.parametrize("payload", ["s3cret", ["s3cret"], [{"to": ["s3cret"]}], {"to": ["s3cret"]}], ids=str)
def test_the_payload_is_not_repeated_in_the_reason(annotation: object, payload: object) -> None:
    assert "s3cret" not in refusal(annotation, payload)


# -- models of pydantic, at any depth ---------------------------------------------------------------------------------


class Line(pydantic.BaseModel):
    sku: str


class CamelOrder(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(alias_generator=to_camel)
    order_id: int
    lines: list[Line] = []


class TwoAliases(pydantic.BaseModel):
    read_as: int = pydantic.Field(validation_alias=pydantic.AliasChoices("one", "other"), serialization_alias="written")


class Total(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    net: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def gross(self) -> int:
        return self.net * 2


class Cat(pydantic.BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(pydantic.BaseModel):
    kind: Literal["dog"] = "dog"
    tricks: int = 0


@dataclass
class Basket:
    lines: list[Line]
    pet: Cat | None = None
    seal: bytes = b"\xff"


@dataclass
class Pets:
    pets: list[Cat | Dog]
    count: Annotated[int, pydantic.Field(ge=1)] = 1


class Crate(msgspec.Struct):
    line: Line


@pydantic.dataclasses.dataclass
class Page:
    url: pydantic.AnyUrl
    line: Line


AT_ANY_DEPTH = [
    pytest.param(list[Line], [Line(sku="a")], id="list of models"),
    pytest.param(dict[str, list[Line]], {"a": [Line(sku="a")]}, id="dict of lists of models"),
    pytest.param(Basket, Basket([Line(sku="a")], Cat()), id="dataclass with models and bytes"),
    pytest.param(Pets, Pets([Dog(), Cat()]), id="dataclass with a union of models"),
    pytest.param(Crate, Crate(Line(sku="a")), id="Struct with a model"),
    pytest.param(Page, Page(pydantic.AnyUrl("https://gw.dev/"), Line(sku="a")), id="pydantic dataclass"),
    pytest.param(CamelOrder, CamelOrder(orderId=1, lines=[Line(sku="a")]), id="aliases of a generator"),
    pytest.param(list[CamelOrder], [CamelOrder(orderId=1)], id="aliases in a list"),
    pytest.param(TwoAliases, TwoAliases(one=1), id="validation and serialization alias"),
    pytest.param(Total, Total(net=1), id="computed field"),
    pytest.param(Cat | Dog, Dog(tricks=2), id="union of models"),
    pytest.param(Annotated[Cat | Dog, pydantic.Field(discriminator="kind")], Dog(tricks=2), id="tagged union"),
    pytest.param(list[Cat | Line], [Line(sku="a"), Cat()], id="list of a union"),
    pytest.param(pydantic.RootModel[list[Line]], pydantic.RootModel[list[Line]]([Line(sku="a")]), id="RootModel"),
    pytest.param(dict[str, pydantic.PositiveInt], {"a": 1}, id="constraint outside of a model"),
    pytest.param(pydantic.AnyUrl, pydantic.AnyUrl("https://gw.dev/"), id="type of pydantic's"),
]


@pytest.mark.parametrize(("annotation", "value"), AT_ANY_DEPTH)
def test_what_a_task_can_read_can_be_added_performed_and_returned(annotation: Any, value: object) -> None:
    def task(payload: Any) -> Any:
        assert payload == value
        return {"payload": payload}

    task.__annotations__["payload"] = annotation
    tasks = TaskRegistry()
    tasks.task("echo", result=True)(task)

    with inline(tasks) as attempts:
        Client("postgres://localhost:1/nowhere").add("echo", value)
    stored = attempts[0].outcome

    assert perform("echo", value, tasks=tasks) == {"payload": value}
    assert isinstance(stored, Completed)
    assert stored.result_error is None
    assert received(annotation, text=encode_payload(value)) == value


def test_a_model_is_read_by_its_aliases_too() -> None:
    assert received(CamelOrder, {"orderId": 1}) == received(CamelOrder, {"order_id": 1}) == CamelOrder(orderId=1)


def test_the_result_of_a_task_has_the_computed_fields_of_a_model() -> None:
    tasks = TaskRegistry()
    tasks.task("total", result=True)(lambda: [Total(net=1)])
    with inline(tasks) as attempts:
        Client("postgres://localhost:1/nowhere").add("total")
    outcome = attempts[0].outcome

    assert isinstance(outcome, Completed)
    assert outcome.result == '[{"net":1,"gross":2}]'


class Login(pydantic.BaseModel):
    password: pydantic.SecretStr


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Login(password=pydantic.SecretStr("s3cret")), "a secret is written as asterisks"),
        ([Login(password=pydantic.SecretStr("s3cret"))], "a secret is written as asterisks"),
        ({"a": pydantic.SecretBytes(b"s3cret")}, "a secret is written as asterisks"),
        (Raw(data=b"\xff"), "cannot be written as JSON: .*invalid utf-8"),
        ([Raw(data=b"\xff")], "cannot be written as JSON: .*invalid utf-8"),
        ([Number(value=math.nan)], "contains nan"),
        ({"a": Number(value=-math.inf)}, "contains -inf"),
    ],
)
def test_a_model_that_would_not_come_back_is_rejected_when_it_is_added(value: object, reason: str) -> None:
    with pytest.raises(InvalidJobError, match=reason) as caught:
        encode_payload(value)
    assert "s3cret" not in str(caught.value)


def test_asterisks_that_are_no_secret_are_written() -> None:
    assert encode_payload([Line(sku="**********")]) == '[{"sku":"**********"}]'


def test_bytes_beside_types_that_pydantic_reads_are_rejected_at_load() -> None:
    def task(payload: Any) -> None: ...

    task.__annotations__["payload"] = dict[str, Cat | Dog | bytes]
    with pytest.raises(TaskLoadError, match="bytes are written as base64 outside of models"):
        TaskRegistry().register("pets", task)


@pytest.mark.parametrize(
    ("annotation", "payload", "reason", "permanent"),
    [
        (Mail, {"to": 1}, "at `$.to`", True),
        (Mail, [], "Expected `object`", True),
        (Mail, {}, "missing required field", False),
        (StrictStruct, {"to": "", "cc": ""}, "unknown field", False),
        (Colour, "blue", "not among those allowed", False),
        (Literal["red"], "blue", "not among those allowed", False),
        (Annotated[int, msgspec.Meta(ge=3)], 2, ">= 3", True),
        (datetime, "yesterday", "Invalid RFC3339", True),
        (Line, {"sku": 1}, "at `$.sku`", True),
        (Line, {}, "Field required - at `$.sku`", False),
        (StrictModel, {"to": "", "cc": ""}, "at `$.cc`", False),
        (Basket, {"lines": [{"sku": "a"}, {"sku": 1}]}, "at `$.lines[1].sku`", True),
        (Basket, {"lines": [{}]}, "Field required - at `$.lines[0].sku`", False),
        (Pets, {"pets": [], "count": 0}, "greater than or equal to 1 - at `$.count`", True),
        (Annotated[int, pydantic.Field(ge=3)], 2, "greater than or equal to 3 - at `$`", True),
        (Even, {"number": 3}, "odd today", False),
        (list[Even], [{"number": 3}], "odd today - at `$[0].number`", False),
    ],
)
def test_a_job_fails_immediately_if_no_attempt_can_change_that_its_payload_does_not_fit(
    annotation: object, payload: object, reason: str, permanent: bool
) -> None:
    message = refusal(annotation, payload, attempts=2)

    assert reason in message
    assert ("not retried after attempt 2 of 25" in message) is permanent


# -- what is called ---------------------------------------------------------------------------------------------------


def call_kind(function: Callable[[list[Any]], Callable[..., object]]) -> list[str]:
    """What the function was called with, as words."""
    arguments = got(function, {"a": 1})
    return [
        "context" if isinstance(each, JobContext) else "payload" if each == {"a": 1} else repr(each)
        for each in arguments
    ]


CALLS: dict[str, tuple[Callable[[list[Any]], Callable[..., object]], list[str]]] = {
    "nothing": (lambda seen: lambda: seen.append([]), []),
    "payload": (lambda seen: lambda p: seen.append([p]), ["payload"]),
    "payload and context": (lambda seen: lambda p, c: seen.append([p, c]), ["payload", "context"]),
    "positional only": (lambda seen: lambda p, c, /: seen.append([p, c]), ["payload", "context"]),
    "payload with a default": (lambda seen: lambda p=None: seen.append([p]), ["payload"]),
    "context with a default": (lambda seen: lambda p, context=1: seen.append([p, context]), ["payload", "context"]),
    "another default is kept": (lambda seen: lambda p, dry_run=False: seen.append([p, dry_run]), ["payload", "False"]),
    "third with a default": (lambda seen: lambda p, c, n=3: seen.append([p, c, n]), ["payload", "context", "3"]),
    "star": (lambda seen: lambda *args: seen.append(args), ["payload", "context"]),
    "payload and star": (lambda seen: lambda p, *args: seen.append([p, *args]), ["payload", "context"]),
    "context by name": (lambda seen: lambda p, *, context: seen.append([p, context]), ["payload", "context"]),
    "context by name alone": (lambda seen: lambda *, context: seen.append([context]), ["context"]),
    "keyword with a default": (lambda seen: lambda p, *, n=3: seen.append([p, n]), ["payload", "3"]),
    "keywords": (lambda seen: lambda p, **rest: seen.append([p, *rest]), ["payload"]),
}


@pytest.mark.parametrize(("function", "expected"), CALLS.values(), ids=CALLS)
def test_the_signature_decides_what_a_task_is_called_with(
    function: Callable[[list[Any]], Callable[..., object]], expected: list[str]
) -> None:
    assert call_kind(function) == expected


def test_a_parameter_annotated_as_context_gets_it_in_spite_of_a_default() -> None:
    def around(seen: list[Any]) -> Callable[..., object]:
        def task(payload: Any, tools: JobContext | None = None) -> None:
            seen.append([payload, tools])

        return task

    assert call_kind(around) == ["payload", "context"]


def test_methods_and_callable_objects_are_tasks() -> None:
    class Sender:
        def __init__(self, seen: list[Any]) -> None:
            self.seen = seen

        def send(self, payload: Mail) -> None:
            self.seen.append(payload)

        def __call__(self, payload: Mail, context: JobContext) -> None:
            self.seen.append(payload)

    assert got(lambda seen: Sender(seen).send, {"to": "home"}) == Mail("home")
    assert got(lambda seen: Sender(seen), {"to": "home"}) == Mail("home")


def test_an_object_with_an_async_call_is_awaited() -> None:
    class Sender:
        def __init__(self, seen: list[Any]) -> None:
            self.seen = seen

        async def __call__(self, payload: Mail) -> None:
            self.seen.append(payload)

    assert got(lambda seen: Sender(seen), {"to": "home"}) == Mail("home")


# -- what is no task --------------------------------------------------------------------------------------------------


def needs_more(payload: Any, context: JobContext, account: str) -> None: ...
def needs_a_keyword(payload: Any, *, account: str) -> None: ...
def context_first(context: JobContext) -> None: ...
def no_json(payload: Callable[[], int]) -> None: ...
def no_json_class(payload: ResourceWithoutFields) -> None: ...
def two_dataclasses(payload: Mail | Other) -> None: ...
def generator(payload: Any) -> Any:
    yield payload


class ResourceWithoutFields:
    pass


@dataclass
class Other:
    it: int


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (needs_more, "also needs account"),
        (needs_a_keyword, "also needs account"),
        (context_first, "the payload comes first"),
        (no_json, "cannot be converted to"),
        (no_json_class, "cannot be converted to ResourceWithoutFields"),
        (two_dataclasses, "cannot be converted to"),
        (generator, "generator function"),
    ],
)
def test_a_function_that_cannot_be_a_task_is_rejected_when_it_is_registered(
    function: Callable[..., object], reason: str
) -> None:
    with pytest.raises(TaskLoadError, match=reason):
        TaskRegistry().register("mail", function)


# -- what schedulers and tracers add ----------------------------------------------------------------------------------

BY_CRON = '{"to": "home", "_cron": {"ts": "2026-11-23T04:30:00.000Z", "backfilled": true}, "_trace": {"id": "7"}}'


@pydantic.dataclasses.dataclass(config=pydantic.ConfigDict(extra="forbid"))
class StrictDataclass:
    to: str


@pytest.mark.parametrize(
    ("annotation", "payload"),
    [
        (StrictStruct, StrictStruct("home")),
        (StrictModel, StrictModel(to="home")),
        (StrictDataclass, StrictDataclass("home")),
        (dict[str, str], {"to": "home"}),
        (Mail, Mail("home")),
    ],
    ids=["struct", "model", "pydantic dataclass", "dict of texts", "dataclass"],
)
def test_a_strict_type_gets_the_payload_without_what_a_scheduler_added(annotation: Any, payload: object) -> None:
    seen: list[Any] = []

    def task(payload: Any, context: JobContext) -> None:
        seen.extend((payload, context.cron, context.trace))

    task.__annotations__["payload"] = annotation
    assert isinstance(run(task, text=BY_CRON), Completed)
    assert seen == [payload, CronRun(datetime(2026, 11, 23, 4, 30, tzinfo=UTC), backfilled=True), {"id": "7"}]


@pytest.mark.parametrize(
    ("annotation", "text", "payload"),
    [
        (Any, BY_CRON, {"to": "home"}),
        (MailDict, BY_CRON, {"to": "home"}),
        (list[StrictStruct], f"[{BY_CRON}, {BY_CRON}]", [StrictStruct("home")] * 2),
        (list[dict[str, str]], f"[{BY_CRON}]", [{"to": "home"}]),
        (Any, f'[{BY_CRON}, 7, "_cron"]', [{"to": "home"}, 7, "_cron"]),
        (Any, '{"a": "\\ud800", "_trace": {}}', {"a": "\ud800"}),
    ],
    ids=["plain", "TypedDict", "list of structs", "list of dicts", "mixed list", "lone surrogate"],
)
def test_what_a_scheduler_or_tracer_added_is_no_argument(annotation: Any, text: str, payload: object) -> None:
    assert received(annotation, text=text) == payload


def test_fields_deeper_in_a_payload_are_the_callers() -> None:
    assert received(Any, {"a": {"_trace": 1}}) == {"a": {"_trace": 1}}


@pytest.mark.parametrize(
    "text", ["{}", "[]", '"_cron"', '{"_cron": 7}', '{"a": "\\ud800", "_cron": {}}', '["_cron", 1]']
)
def test_a_payload_no_scheduler_touched_has_no_cron(text: str) -> None:
    seen: list[Any] = []
    run(lambda payload, context: seen.extend((context.cron, context.trace)), text=text)

    assert seen == [None, None]


def test_a_strict_type_still_rejects_what_else_it_does_not_know() -> None:
    assert "unknown field `cc`" in refusal(StrictStruct, text='{"to": "home", "_cron": {}, "cc": "you"}')
