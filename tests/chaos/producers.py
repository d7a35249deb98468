"""Those who add jobs, and remember which adds were answered."""

from __future__ import annotations

import itertools
import random
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from gw_core import Client, JobKeyMode, JobSpec
from gw_core.errors import GraphileWorkerError

from .limits import LARGE_TENANT, LIMITS, TENANTS

QUEUES: Final = 12
KEYS: Final = 25
BATCH: Final = 400
PAUSE: Final = 0.03
GROUPS: Final = 5
MEMBERS: Final = 50
AGAIN_AFTER: Final = 0.1
MAX_LONG_JOBS: Final = 100
MAX_LIMITED_JOBS: Final = 60
"""Jobs of all limited tasks per second of the run, far fewer than their limits allow."""

HOLDER: Final = re.compile(r"gw-.*-(\d+)-[0-9a-f]+")


@dataclass(slots=True, kw_only=True)
class Added:
    """One add: what was asked for, and whether it was answered. TimeRange are nanoseconds of the monotonic clock."""

    n: int
    kind: str
    spec: JobSpec
    transaction: int
    asked: int = 0
    asked_wall: int = 0
    answered: int | None = None
    delay: float = 0.0
    """Seconds from when it was added until it may run."""
    removed: int | None = None
    """When its removal was answered."""
    last: int | None = None
    """The number of the job that waits for this one, a member of its group."""
    holder: int | None = None
    """The process that ran it when it was removed; 0 for one that is not ours."""


class Producers:
    """Adds this many jobs over this many seconds, in several threads, and what was left over at the end."""

    def __init__(self, conninfo: str, *, seed: int, jobs: int, load: Sequence[float]) -> None:
        self.added: list[Added] = []
        self.empty_answers: list[int] = []
        """Adds that were answered, but not with the job that was asked for."""
        self.refusals = 0
        self._conninfo = conninfo
        self._seed = seed
        self._numbers = itertools.count(1)
        self._transactions = itertools.count(1)
        self._stopping = threading.Event()
        self._began = 0.0
        self._load = load
        self._shares = {"bulk": jobs - 2 * (jobs // 40), "keyed": jobs // 40, "removed": jobs // 40}
        self._shares["groups"] = GROUPS
        self._threads: list[threading.Thread] = []
        self._errors: list[BaseException] = []
        self._long = 0
        self._limited = 0

    def start(self) -> None:
        self._began = time.monotonic()
        works = {"bulk": self._add_bulk, "keyed": self._add_keyed, "removed": self._add_and_remove}
        for name, work in {**works, "groups": self._add_group}.items():
            thread = threading.Thread(target=self._produce, args=(name, work), name=f"producer-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until everything is added; raises when that takes longer or a thread broke."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        late = [thread.name for thread in self._threads if thread.is_alive()]
        self.close()
        if self._errors:
            raise self._errors[0]
        if late:
            raise TimeoutError(f"{', '.join(late)} could not add all jobs within {seconds:.0f} s")

    def close(self) -> None:
        self._stopping.set()

    # -- pace --------------------------------------------------------------------------------------------------------

    def _produce(self, name: str, work: Any) -> None:
        rng = random.Random(f"{name} {self._seed}")
        done = 0
        try:
            with Client(self._conninfo, max_pool_size=1) as client:
                while done < self._shares[name] and not self._stopping.is_set():
                    due = int(self._share_by_now() * self._shares[name]) - done
                    if due <= 0:
                        self._stopping.wait(PAUSE)
                        continue
                    done += self._try(work, client, rng, due)
        except BaseException as error:
            self._errors.append(error)

    def _try(self, work: Any, client: Client, rng: random.Random, due: int) -> int:
        """Return how many adds were answered; those that were not may have been made."""
        try:
            return int(work(client, rng, due))
        except GraphileWorkerError:
            self.refusals += 1
            self._stopping.wait(AGAIN_AFTER)
            return 0

    def _share_by_now(self) -> float:
        second, part = divmod(time.monotonic() - self._began, 1.0)
        whole = int(second)
        if whole >= len(self._load):
            return 1.0
        return sum(self._load[:whole]) + self._load[whole] * part

    # -- plain, queued, failing, scheduled, long -----------------------------------------------------------------------

    def _add_bulk(self, client: Client, rng: random.Random, due: int) -> int:
        transaction = next(self._transactions)
        batch = [self._one_of_many(rng, transaction) for _ in range(min(due, BATCH))]
        self._ask(*batch)
        client.add_many([each.spec for each in batch])
        self._answered(*batch)
        return len(batch)

    def _one_of_many(self, rng: random.Random, transaction: int) -> Added:
        n, kind = next(self._numbers), self._kind(rng)
        payload: dict[str, Any] = {"n": n, "ms": rng.choice([0, 0, 1, 2, 5])}
        options: dict[str, Any] = {}
        task, delay = "chaos", 0.0
        match kind:
            case "queued":
                payload["ms"] = rng.choice([0, 0, 0, 1, 3])
                options["queue_name"] = f"q{rng.randrange(QUEUES)}"
            case "failing":
                again = {"fails": rng.choice([1, 2]), "again": rng.choice([0, 300])}
                payload |= {"fails": 1} if rng.random() < 0.3 else again
                if rng.random() < 0.3:
                    options["queue_name"] = f"q{rng.randrange(QUEUES)}"
            case "final":
                payload["fails"], options["max_attempts"] = 99, 1
            case "alone":
                task, payload["ms"] = "alone", rng.choice([1, 20, 100])
                payload |= {"fails": rng.choice([0, 0, 1]), "again": rng.choice([0, 50])}
                if rng.random() < 0.8:
                    options["queue_name"] = f"alone{rng.randrange(QUEUES)}"
            case "big":
                payload["blob"] = "x" * rng.randrange(100_000, 500_000)
            case "scheduled":
                delay = rng.uniform(0.5, 5.0)
                options["run_at"] = timedelta(seconds=delay)
            case "limited" | "paced" | "tenant":
                task, payload["ms"] = kind, rng.choice([1, 20, 100])
                payload |= {"fails": rng.choice([0, 0, 0, 1]), "again": 300, "tenant": self._tenant(rng)}
                if rng.random() < 0.1:
                    options["queue_name"] = f"{kind}{rng.randrange(QUEUES)}"
            case "long":
                payload["ms"] = rng.randrange(1_000, 3_000)
                if rng.random() < 0.3:
                    options["queue_name"] = f"q{rng.randrange(QUEUES)}"
        spec = JobSpec(task=task, payload=payload, **options)
        return Added(n=n, kind=kind, spec=spec, transaction=transaction, delay=delay)

    def _kind(self, rng: random.Random) -> str:
        kinds = ("plain", "queued", "failing", "final", "scheduled", "long", "alone", "big", *LIMITS)
        [kind] = rng.choices(kinds, (54.9, 33, 2, 0.5, 3, 0.5, 2, 0.1, 1.2, 1.2, 1.6))
        if kind in LIMITS:
            self._limited += 1
            return kind if self._limited <= MAX_LIMITED_JOBS * len(self._load) else "plain"
        if kind == "long":
            self._long += 1
            return "long" if self._long <= MAX_LONG_JOBS else "plain"
        return kind

    def _tenant(self, rng: random.Random) -> str:
        return LARGE_TENANT if rng.random() < 0.6 else f"t{rng.randrange(1, TENANTS)}"

    # -- keyed -------------------------------------------------------------------------------------------------------

    def _add_keyed(self, client: Client, rng: random.Random, due: int) -> int:
        n = next(self._numbers)
        number = rng.randrange(KEYS)
        spec = JobSpec(
            task="chaos",
            payload={"n": n, "ms": rng.choice([0, 1, 20])},
            job_key=f"k{number}",
            queue_name=f"q{number}" if number % 3 == 0 else None,
            job_key_mode=rng.choice([JobKeyMode.REPLACE, JobKeyMode.PRESERVE_RUN_AT]),
        )
        added = Added(n=n, kind="keyed", spec=spec, transaction=next(self._transactions))
        self._ask(added)
        job = client.add(spec)
        self._answered(added)
        if job is None or job.id is None or job.payload != spec.payload:
            self.empty_answers.append(n)
        return 1

    # -- groups -------------------------------------------------------------------------------------------------------

    def _add_group(self, client: Client, rng: random.Random, due: int) -> int:
        transaction, last = next(self._transactions), next(self._numbers)
        members = [self._member(rng, transaction, last) for _ in range(MEMBERS)]
        spec = JobSpec(task="chaos", payload={"n": last, "ms": 50})
        then = Added(n=last, kind="last", spec=spec, transaction=transaction)
        self._ask(*members, then)
        client.groups.add([each.spec for each in members], then=spec)
        self._answered(*members, then)
        return 1

    def _member(self, rng: random.Random, transaction: int, last: int) -> Added:
        n = next(self._numbers)
        payload = {"n": n, "ms": rng.choice([0, 20, 500]), "fails": rng.choice([0, 0, 1]), "again": 300}
        spec = JobSpec(task="chaos", payload=payload)
        return Added(n=n, kind="member", spec=spec, transaction=transaction, last=last)

    # -- removed, while it runs or before ----------------------------------------------------------------------------

    def _add_and_remove(self, client: Client, rng: random.Random, due: int) -> int:
        n = next(self._numbers)
        payload = {"n": n, "ms": rng.choice([30, 60, 200]), "fails": rng.choice([0, 99])}
        delay = rng.choice([timedelta(0), timedelta(0), timedelta(seconds=30)])
        spec = JobSpec(task="chaos", payload=payload, job_key=f"r{n}", run_at=delay or None)
        added = Added(n=n, kind="removed", spec=spec, transaction=next(self._transactions), delay=delay.total_seconds())
        self._ask(added)
        client.add(spec)
        self._answered(added)
        self._stopping.wait(0 if due > 20 else rng.uniform(0, 0.1))
        # What happened is known only when the first try is answered; the others are made when all is over.
        removed = client.remove(f"r{n}")
        added.removed = time.monotonic_ns()
        if removed is not None and removed.was_running:
            holder = HOLDER.fullmatch(removed.job.locked_by or "")
            added.holder = int(holder[1]) if holder else 0
        return 1

    def remove_the_rest(self, client: Client) -> None:
        """Remove those whose removal was not answered; they would fail and be tried again for days."""
        for added in self.added:
            if added.kind == "removed" and added.removed is None:
                client.remove(f"r{added.n}")

    # -- remembering -------------------------------------------------------------------------------------------------

    def _ask(self, *batch: Added) -> None:
        now, wall = time.monotonic_ns(), time.time_ns()
        for each in batch:
            each.asked, each.asked_wall = now, wall
        self.added.extend(batch)

    def _answered(self, *batch: Added) -> None:
        now = time.monotonic_ns()
        for each in batch:
            each.answered = now
