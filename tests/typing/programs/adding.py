"""Adding jobs as an editor sees it; each line that is wrong names the checkers that reject it."""

from dataclasses import dataclass
from datetime import timedelta

from gw_core import AsyncClient, Client, JobContext, JobSpec, Runner, Selection, TaskRegistry, run_once
from gw_core.events import JobFailed

tasks = TaskRegistry()
queue = Client("postgres:///shop")


@dataclass
class Charge:
    amount: int


@tasks.task
def charge(payload: Charge, context: JobContext) -> None: ...


@tasks.task("mail/send")
def send(payload: dict[str, str]) -> None: ...


@tasks.task
async def sync_crm(payload: Charge) -> None: ...


@tasks.task
def clean_up() -> None: ...


queue.add(charge, Charge(amount=5), run_at=timedelta(minutes=5), priority=-1)
queue.add(send, {"to": "ann@example.com"}, queue_name="mail")
queue.add(sync_crm, Charge(amount=5))
queue.add(clean_up)
queue.add("charge", {"amount": 5}, job_key="k", job_key_mode="preserve_run_at")
queue.add(JobSpec(task="charge"))
queue.jobs.count(Selection.of(state="failed"))
queue.add_batch("charge", [1, 2], max_attempts=3)

queue.add(charge, {"amount": 5})  # wrong
queue.add(charge, Charge(amount="5"))  # wrong
queue.add(send, Charge(amount=5))  # wrong
queue.add(charge)  # wrong
queue.add("charge", {}, priorty=1)  # wrong
queue.add("charge", {}, run_at="tomorrow")  # wrong
print(queue.add("charge").id)
print(queue.try_add("charge").id)  # wrong: a plugin may skip it
print(queue.pauses.list()[0].target, queue.jobs.retry("state:failed").ids)
queue.pauses.pause("all", untl=timedelta(hours=1))  # wrong
for batch in queue.jobs.in_batches().retry("state:failed"):
    print(batch.ids)


@tasks.task
def follow_up(payload: Charge, context: JobContext) -> None:
    context.add(charge, payload, run_at=timedelta(minutes=5))
    context.add(charge, {"amount": 5})  # wrong
    context.add("charge", {}, priorty=1)  # wrong


runner = Runner("postgres:///shop", tasks=tasks)


@runner.events.on(JobFailed)
def report(event: JobFailed) -> None:
    print(event.job.id)
    print(event.jobs)  # wrong


run_once("postgres:///shop", tasks=tasks, migrate=False)
run_once("postgres:///shop", tasks=tasks, migrat=False)  # wrong
queue.add_batch("charge", [1, 2], max_attempt=3)  # wrong
queue.jobs.count(Selection.of(state="fialed"))  # wrong


async def on_a_loop(client: AsyncClient) -> None:
    job = await client.add(charge, Charge(amount=5))
    print(job.id, [each.target for each in await client.pauses.list()])
    print([each.name for each in await client.queues.list()])
    async for batch in client.jobs.in_batches().retry("state:failed"):
        print(batch.ids)
    print(client.pauses.list()[0])  # wrong: not awaited
    await client.groups.cancel("7")  # wrong
    await client.add(charge, {"amount": 5})  # wrong
