"""Node.js and we run jobs at the same time on one schema."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mixed_workers import BATCHES, NOTES, WAITS, Kind, MixedQueue, by_node, side_by_side
from support.node_worker import FIRST_VERSION_WITH_BATCHES, NEWEST, RunningWorker
from support.schema_fixture import Row

from gw_core import JobSpec

pytestmark = [pytest.mark.interop, pytest.mark.acceptance]

OLDER = pytest.param(Kind(FIRST_VERSION_WITH_BATCHES), marks=pytest.mark.slow)
KINDS = pytest.mark.parametrize("kind", [OLDER, Kind(NEWEST), Kind(NEWEST, BATCHES)], ids=str)
ANY_KIND = pytest.mark.parametrize(
    "kind", [OLDER, Kind(NEWEST), pytest.param(Kind(NEWEST, BATCHES), marks=pytest.mark.slow)], ids=str
)

AN_HOUR = "3600000"
"""A job that is found by a poll at this interval is found too late for any test."""


# -- announced immediately, however it was added ----------------------------------------------------------------------

ADD_JOBS = """
select add_jobs(array(select (task, '{}', null, null, null, null, null, null)::job_spec
  from unnest(%s::text[]) as task))
"""
Add = Callable[[MixedQueue, Kind, list[str]], object]
WAYS: dict[str, Add] = {
    "the client": lambda site, kind, tasks: [site.client.add(task) for task in tasks],
    "the client, many": lambda site, kind, tasks: site.client.add_many([JobSpec(task=task) for task in tasks]),
    "the program": lambda site, kind, tasks: [site.gw("add", task) for task in tasks],
    "SQL": lambda site, kind, tasks: [site.run("select add_job(%s)", task) for task in tasks],
    "SQL, many": lambda site, kind, tasks: site.run(ADD_JOBS, tasks),
    "a trigger": lambda site, kind, tasks: site.run("insert into public.orders select unnest(%s::text[])", tasks),
    "Node": lambda site, kind, tasks: by_node(
        site, kind.node, "for (const task of input.tasks) await utils.addJob(task, {});", tasks=tasks
    ),
    "Node, many": lambda site, kind, tasks: by_node(
        site, kind.node, "await utils.addJobs(input.tasks.map((identifier) => ({ identifier })));", tasks=tasks
    ),
}
A_TRIGGER = """
create table public.orders (task text);
create function public.on_order() returns trigger language plpgsql as $$
begin
  perform graphile_worker.add_job(new.task);
  return new;
end;
$$;
create trigger on_order after insert on public.orders for each row execute function public.on_order();
"""


@ANY_KIND
def test_a_job_added_in_any_way_is_picked_up_immediately_by_either_side(site: MixedQueue, kind: Kind) -> None:
    site.hands.execute(A_TRIGGER.encode())
    with side_by_side(
        site, kind, node={"in_node": NOTES["node"]}, python={"in_python": NOTES["python"]}, poll=AN_HOUR
    ) as workers:
        for number, add in enumerate(WAYS.values(), start=1):
            add(site, kind, ["in_node", "in_python"])
            site.wait_for(2 * number)
            site.wait_until_settled()

    entries = site.ledger()
    assert len(entries) == 2 * len(WAYS)
    assert {(entry["task"], entry["side"]) for entry in entries} == {("in_node", "node"), ("in_python", "python")}
    assert_all_went_well(kind, *workers)


# -- both together ----------------------------------------------------------------------------------------------------

# In ordered queues every job is for both; in torn ones some are only for one side.
# The task `unknown` stands at the head of the first ordered queue, where it must delay no other job.
A_LOT = """
select count(*) from graphile_worker.add_jobs(array(
  select (identifier, json_build_object('n', n), queue, now() - interval '1 hour' + n * interval '1 ms',
          null, null, n %% 5, null)::graphile_worker.job_spec
    from (
           select 'unknown' as identifier, 'ordered-0' as queue, 0 as n from generate_series(1, 5)
           union all
           select 'shared', null, n from generate_series(1, 600) as n
           union all
           select (array['for_node', 'for_python'])[1 + n %% 2], null, n from generate_series(1, 200) as n
           union all
           select 'shared', 'ordered-' || n %% 24, n from generate_series(1, 480) as n
           union all
           select (array['shared', 'for_node', 'for_python'])[1 + n %% 3], 'torn-' || n %% 8, n
             from generate_series(1, 200) as n
         ) as wanted
))
"""
TO_RUN = 600 + 200 + 480 + 200
BEGUN_BY = "task = 'shared' and side = %s"


@KINDS
def test_a_mixed_queue_is_shared_each_job_once_and_named_queues_serially(site: MixedQueue, kind: Kind) -> None:
    with (
        site.closed_gate() as gate,
        side_by_side(
            site,
            kind,
            node={"shared": WAITS["node"], "for_node": NOTES["node"]},
            python={"shared": WAITS["python"], "for_python": NOTES["python"]},
            poll="100",
        ) as workers,
    ):
        with site.hands.transaction():
            site.run(A_LOT)
            untouched = rows_of(site, "unknown")
        # Whichever is held up: no side ends a shared job before the other has begun one.
        for side in ("node", "python"):
            site.wait_for(1, BEGUN_BY, side)
        gate.open()
        site.wait_for(TO_RUN)
        site.wait_until_settled(left=[row["id"] for row in untouched])

    assert len(site.ledger()) == TO_RUN
    assert site.run("select job_id from public.ledger group by job_id having count(*) > 1") == []
    assert site.overlaps() == []
    assert site.out_of_order() == []
    assert sides_of(site, "for_node") == {"node"}
    assert sides_of(site, "for_python") == {"python"}
    assert sides_of(site, "shared") == {"node", "python"}
    assert rows_of(site, "unknown") == untouched
    assert site.locks() == []
    assert_all_went_well(kind, *workers)


@ANY_KIND
def test_a_named_queue_goes_on_immediately_when_a_long_job_of_node_ends(site: MixedQueue, kind: Kind) -> None:
    # A worker of Node that ended a job of a queue sleeps for the poll interval afterwards, without a notification.
    node = {"for_node": WAITS["node"], "shared": NOTES["node"]}
    with (
        site.closed_gate() as gate,
        side_by_side(site, kind, node=node, python={"shared": NOTES["python"]}, poll=AN_HOUR),
    ):
        site.add("for_node", {}, queue_name="one")
        site.wait_for(1, "begun is not null")
        site.fill(20, task="shared", queue="'one'")
        gate.open()
        site.wait_for(21)
        site.wait_until_settled()

    assert [entry["job_id"] for entry in site.ledger()] == list(range(1, 22))
    assert site.overlaps() == []


def rows_of(site: MixedQueue, task: str) -> list[Row]:
    return site.run(
        "select jobs.* from _private_jobs as jobs join _private_tasks as tasks on tasks.id = jobs.task_id"
        " where tasks.identifier = %s order by jobs.id",
        task,
    )


def sides_of(site: MixedQueue, task: str) -> set[object]:
    return {entry["side"] for entry in site.ledger("task = %s", task)}


# -- each with what it knows ------------------------------------------------------------------------------------------


def test_a_run_of_either_side_ends_and_leaves_the_jobs_of_the_other_as_they_are(site: MixedQueue) -> None:
    for queue in (None, "q"):
        for task in ("for_node", "for_python"):
            site.add(task, {}, queue_name=queue)
    theirs = rows_of(site, "for_node")

    site.gw_run_once({"for_python": NOTES["python"]})
    assert site.jobs() == theirs

    site.add("for_python", {}, queue_name="q")
    ours = rows_of(site, "for_python")
    Kind(NEWEST).node.run_once(site.url, {"for_node": NOTES["node"]})
    assert site.jobs() == ours
    assert len(site.ledger("ended is not null")) == 4


# -- what they say ----------------------------------------------------------------------------------------------------


def assert_all_went_well(kind: Kind, theirs: RunningWorker, ours: RunningWorker) -> None:
    """Neither warned of anything, apart from 0.17 of the revision that it does not know."""
    warnings = [line for line in theirs.output.splitlines() if "WARN" in line]
    assert len(warnings) == (1 if kind.version == FIRST_VERSION_WITH_BATCHES else 0), theirs.output
    assert "ERROR" not in theirs.output
    assert not any(word in ours.output for word in ("WARN", "ERROR", "Traceback")), ours.output
