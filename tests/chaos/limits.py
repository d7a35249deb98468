"""The limited tasks of a run: their limits, what the database records of their claims, and how both are judged."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from gw_core import Client

from .ledger import Run

RUNNING: Final = "limited"
"""A task of which few jobs run at a time. The number changes during the run."""

RATE: Final = "paced"
"""A task of which this many jobs start per second."""

FIELD: Final = "tenant"
"""A task of which few jobs run at a time for each tenant; its limit is removed and set again during the run."""

MOST_RUNNING: Final = 3
"""The largest limit that `RUNNING` has at any time."""

LIMITS: Final[Mapping[str, Mapping[str, Any]]] = {
    RUNNING: {"running": 2},
    RATE: {"per_period": 40, "period": timedelta(seconds=1)},
    FIELD: {"running": 2, "field": "tenant"},
}

TENANTS: Final = 8
LARGE_TENANT: Final = "t0"
"""A tenant with more jobs than all others together."""

TOLERANCE: Final = 1e-3
"""Tokens by which the arithmetic of the server may differ."""

# Each claim of a limited task with how many jobs of it are locked afterwards, and each change of a bucket.
WITNESS: Final = """
create table public.limited_claims (
  task text, value text, job_id bigint, attempt integer, transaction bigint, locked integer, most_running integer
);
create function public.note_limited() returns trigger language plpgsql as $$
declare
  the_task text := (select identifier from graphile_worker._private_tasks where id = new.task_id);
  the_limit graphile_worker._private_gw_limits;
begin
  if the_task not in ('limited', 'paced', 'tenant') then
    return null;
  end if;
  select * into the_limit from graphile_worker._private_gw_limits where task = the_task;
  insert into public.limited_claims
  select the_task, new.payload ->> 'tenant', new.id, new.attempts, txid_current(), count(*), the_limit.most_running
    from graphile_worker._private_jobs as jobs
   where jobs.locked_at is not null
     and jobs.task_id = new.task_id
     and (the_limit.field is null or jobs.payload ->> 'tenant' = new.payload ->> 'tenant');
  return null;
end $$;
create trigger note_limited after update on graphile_worker._private_jobs for each row
  when (old.locked_by is null and new.locked_by is not null) execute function public.note_limited();

create table public.bucket_changes (
  task text, transaction bigint, tokens_before double precision, tokens double precision, seconds double precision
);
create function public.note_bucket() returns trigger language plpgsql as $$ begin
  if tg_op = 'INSERT' then
    insert into public.bucket_changes values (new.task, txid_current(), null, new.tokens, null);
  else
    insert into public.bucket_changes
    values (new.task, txid_current(), old.tokens, new.tokens, date_part('epoch', new.filled_at - old.filled_at));
  end if;
  return null;
end $$;
create trigger note_bucket after insert or update on graphile_worker._private_gw_buckets
  for each row execute function public.note_bucket();
"""


@dataclass(frozen=True, slots=True)
class LimitedClaim:
    """A claim of a job whose task has a limit, as the database recorded it."""

    task: str
    value: str | None
    job_id: int
    attempt: int
    transaction: int
    locked: int
    """How many jobs of the task, or of the value, are locked after it."""
    most_running: int | None
    """The limit at that time; None if there was none."""


@dataclass(frozen=True, slots=True)
class BucketChange:
    """What a claim left in the bucket of a task."""

    task: str
    transaction: int
    tokens_before: float | None
    """None if there was no bucket: it was full."""
    tokens: float
    seconds: float | None
    """How long after the change before this one."""


@dataclass(frozen=True, slots=True)
class Unlimited:
    """The time in which a task had no limit, or not every worker knew of it. Nanoseconds of the monotonic clock."""

    task: str
    began: int
    ended: int


@dataclass(frozen=True, slots=True)
class Paused:
    """The time in which a target was paused, and every worker had confirmed it."""

    target: str
    began: int
    ended: int

    def concerns(self, task: str, queue: str | None) -> bool:
        return self.target in ("all", f"task:{task}", f"queue:{queue}")


def set_limits(client: Client) -> None:
    """Set the limits with which a run begins."""
    for task, limit in LIMITS.items():
        client.limits.set(task, **limit)


def remove_limits(client: Client) -> None:
    for limit in client.limits.list():
        client.limits.remove(limit.task)


# -- rules ------------------------------------------------------------------------------------------------------------


def claims_over_a_limit(claims: Sequence[LimitedClaim]) -> Iterator[str]:
    """The limit by field is set again during a run, and workers learn of it some milliseconds later."""
    for claim in claims:
        if claim.task == RUNNING and claim.most_running is not None and claim.locked > claim.most_running:
            yield (
                f"{claim.locked} jobs of {claim.task} were locked after the claim of job {claim.job_id}"
                f" (value {claim.value}), and {claim.most_running} are allowed"
            )


def runs_without_a_claim(runs: Sequence[Run], claims: Sequence[LimitedClaim]) -> Iterator[str]:
    """A claim that a crash of the server forgot is counted by no limit."""
    recorded = Counter((claim.job_id, claim.attempt) for claim in claims)
    for (job_id, attempt), count in Counter((run.job_id, run.attempt) for run in runs).items():
        if count > (known := recorded[job_id, attempt]):
            yield f"attempt {attempt} of job {job_id} ran {count} times, and its limit knows of {known}"


def starts_over_a_rate(claims: Sequence[LimitedClaim], changes: Sequence[BucketChange]) -> Iterator[str]:
    """Every claim takes a token for each job, and only tokens that are there."""
    claimed = Counter(claim.transaction for claim in claims if claim.task == RATE)
    changed = {change.transaction: change for change in changes if change.task == RATE}
    for transaction, count in claimed.items():
        if transaction not in changed:
            yield f"{count} jobs of {RATE} were claimed without a token in transaction {transaction}"
            continue
        change = changed[transaction]
        if change.tokens < -TOLERANCE or change.tokens + count > _tokens_before(change) + TOLERANCE:
            yield f"{count} jobs of {RATE} were claimed with too few tokens: {change}"


def _tokens_before(change: BucketChange) -> float:
    limit = LIMITS[RATE]
    per_second = limit["per_period"] / limit["period"].total_seconds()
    burst = max(1.0, per_second / 10)
    if change.tokens_before is None or change.seconds is None:
        return burst
    return min(burst, change.tokens_before + change.seconds * per_second)


def too_many_at_a_time(
    runs: Sequence[Run], most: int, end: Callable[[Run], int]
) -> Iterator[tuple[Run, Sequence[Run]]]:
    """Yield each run, in the order of their beginning, that began beside as many others as may run."""
    running: list[Run] = []
    for run in runs:
        running = [each for each in running if end(each) > run.began]
        if len(running) >= most:
            yield run, running
        running.append(run)


def by_limit(runs: Sequence[Run], key: Callable[[Run], tuple[str, str | None] | None]) -> Mapping[Any, list[Run]]:
    """Return the runs of each limited task, or of each value of one."""
    groups: dict[tuple[str, str | None], list[Run]] = defaultdict(list)
    for run in runs:
        if (group := key(run)) is not None:
            groups[group].append(run)
    return groups
