"""Tasks as objects: their jobs, results and options."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from typing import ParamSpec, TypedDict, TypeVar

from pydantic import BaseModel

from gw_core import AsyncClient, Client, GiveUp, JobContext, JobSpec, Task, TaskRegistry, cron, cron_item, task

P = ParamSpec("P")
R = TypeVar("R")


class MailDict(TypedDict):
    to: str


@dataclass
class Resize:
    image: int
    width: int = 800


@dataclass
class Crop:
    image: int


class Receipt(BaseModel):
    total: int


def logged(function: Callable[P, R]) -> Callable[P, R]:
    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    return wrapper


tasks = TaskRegistry()
queue = Client("postgres:///shop")


@task
def mail(payload: MailDict) -> None: ...


@task("floats")
def floats(payload: dict[str, float], context: JobContext) -> None: ...


@tasks.task
def optional_numbers(payload: list[int | None]) -> None: ...


@tasks.task("edits", max_attempts=3, queue_name="images", priority=-1, flags=["gpu"], timeout=timedelta(minutes=1))
def edits(payload: list[Resize | Crop], *, context: JobContext) -> list[int]:
    return [context.job.id for _ in payload]


@task("pay", result=True, retry={PermissionError: GiveUp, ConnectionError: 30, OSError: lambda attempt: 2.0**attempt})
async def pay(payload: Resize) -> Receipt:
    return Receipt(total=payload.image)


@cron("0 8 * * *", tz="Europe/Paris")
@tasks.task
def report() -> int:
    return 1


@task("by_name")
def by_name(payload: Resize, *, context: JobContext) -> None:
    context.try_add(floats, {"a": 1})
    context.add_batch(optional_numbers, [1, 2])
    context.add_batch(optional_numbers, ["a"])  # wrong
    context.try_add(pay, Crop(1))  # wrong


@task("above")
@logged
def above(payload: Resize) -> None: ...


class Mailer:
    @task("method")
    def send(self, payload: MailDict) -> None: ...


registered = tasks.register("registered", Mailer().send)

# Literals have the type that the task asks for.
queue.add(mail.job({"to": "ann@example.com"}))
queue.add(floats.job({"a": 1}))
queue.add(optional_numbers.job([1, 2]))
queue.add(edits.job([Crop(1)]))
queue.add(pay.job(Resize(1), run_at=timedelta(minutes=5), job_key="k", job_key_mode="preserve_run_at"))
queue.add(report.job())
queue.add(above.job(Resize(1)))
queue.add(pay, Resize(1))
queue.add(by_name, Resize(1))
queue.add(mail, {"to": "ann@example.com"})
queue.add(floats, {"a": 1}, run_at=timedelta(minutes=5))
queue.add(optional_numbers, [1, 2])
queue.add(edits, [Crop(1)])
queue.try_add(mail, {"to": "ann@example.com"})
queue.try_add(report)
queue.add_batch(optional_numbers, [1, 2])
queue.add_batch(edits, (Crop(1), Resize(2)), job_key="edits")
queue.add_batch("edits", [1, 2])


def specs() -> Iterator[JobSpec]:
    yield edits.job([Resize(1)])
    yield pay.job(Resize(1), priority=2)


queue.add_many(specs())
queue.add_batch(edits.job([Crop(1)]))
queue.groups.add([pay.job(Resize(n)) for n in range(3)], then=report.job())
cron_item("0 8 * * *", pay.job(Resize(1)), id="daily")
cron_item("0 8 * * *", report)

# A task is called as its function.
mail({"to": "ann@example.com"})
count: int = report()
any_task: Task[[Resize], None] = above


async def results(client: AsyncClient, job_id: int) -> None:
    receipt: Receipt = await pay(Resize(1))
    total: int = (await client.result(job_id, pay)).total
    paid: Receipt = queue.result(job_id, pay, timeout=5)
    edited: list[int] = queue.result(job_id, edits)
    print(receipt, total, paid, edited, queue.result(job_id)["anything"])
    await client.add(floats, {"a": 1})
    await client.add_batch(optional_numbers, [1, 2])
    await client.add_batch(optional_numbers, ["a"])  # wrong
    await client.try_add(mail, {"too": "ann"})  # wrong
    number: str = await client.result(job_id, pay)  # wrong
    print(number, queue.result(job_id, report).total)  # wrong


mail.job({"to": 3})  # wrong
mail.job({"too": "ann"})  # wrong
mail.job({})  # wrong
mail.job()  # wrong
mail.job({"to": "ann"}, priorty=1)  # wrong
mail.job({"to": "ann"}, priority="high")  # wrong
mail.job({"to": "ann"}, run_at=5)  # wrong
mail.job({"to": "ann"}, job_key="k", job_key_mode="preserve")  # wrong
floats.job({"a": "b"})  # wrong
optional_numbers.job(["a"])  # wrong
edits.job([Receipt(total=1)])  # wrong
edits.job(Resize(1))  # wrong
pay.job(Crop(1))  # wrong
pay.job({"image": 1})  # wrong
report.job({"a": 1})  # wrong
above.job(Crop(1))  # wrong
mail({"to": 3})  # wrong
queue.add(pay, Crop(1))  # wrong
queue.add(mail, {"to": 3})  # wrong
queue.add(mail, {"too": "ann"})  # wrong
queue.add(floats, {"a": "b"})  # wrong
queue.add(pay, Resize)  # wrong: the class
queue.add(pay, lambda: Resize(1))  # wrong
queue.try_add(pay, Crop(1))  # wrong
queue.try_add(mail, {"to": 3}, priorty=1)  # wrong
queue.add_batch(optional_numbers, ["a"])  # wrong
queue.add_batch(edits, [Receipt(total=1)])  # wrong
queue.add_batch(pay, [Resize(1)])  # wrong: the task takes no list
queue.add_batch(optional_numbers)  # wrong
queue.add_batch(report, [1])  # wrong
queue.add_batch(optional_numbers, [1], max_attempt=3)  # wrong
queue.add(by_name, Crop(1))  # wrong
queue.groups.add([report.job()], then=report.job(), on_failure="holt")  # wrong
queue.add(pay.job(Resize(1)), priority="high")  # wrong
queue.add_many([pay])  # wrong
queue.groups.add([report.job()], then=report)  # wrong
cron_item("0 8 * * *", report, max_attemts=3)  # wrong
JobSpec(task=pay, payload=Resize(1))  # wrong
JobSpec(task="pay", job_key="k", job_key_mode="bad")  # wrong


@task(timout=3)  # wrong
def misspelled(payload: MailDict) -> None: ...


@tasks.task(isolation="thread")  # wrong
def isolated(payload: MailDict) -> None: ...


@task(retry={"ValueError": GiveUp})  # wrong
def named_by_text(payload: MailDict) -> None: ...


@task
def two_values(a: int, b: str) -> None: ...


@task
def wrong_context(payload: Resize, context: int) -> None: ...


two_values.job(1)  # wrong: the second parameter is no context
wrong_context.job(Resize(1))  # wrong
