"""Named queues: many jobs in one, jobs in many, and jobs behind queues that somebody holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from bench.contenders import Contender, Gw, Jobs, Node, node_tuned
from bench.frame import Goal, Measured, Row
from bench.measure import RATE, Bench, How, drain
from bench.server import ask

AT_LEAST: Final = 20_000
HELD: Final = "held-"
FEWEST_FOR_STATISTICS: Final = 10
"""With fewer queues than this there is nothing that a plan made without statistics could get wrong."""
NODE_UNBATCHED: Final = Node({"concurrentJobs": 24, "maxPoolSize": 25}, log_success=False)


def rows(bench: Bench) -> Sequence[Row]:
    """Few and many queues, with statistics and without, and free jobs behind stuck ones."""
    many = [count for count in bench.sizes.queues if count >= FEWEST_FOR_STATISTICS]
    return (
        *(_queues(bench, count) for count in bench.sizes.queues),
        *(_without_statistics(bench, count) for count in many),
        _stuck(bench, "stuck", "free ones without a queue", queues=0),
        _stuck(bench, "stuck-queued", "free ones in 1,000 queues", queues=1_000),
    )


def _queues(bench: Bench, queues: int) -> Row:
    # No queue stays without a job, or there would be fewer than the title says.
    ours = Jobs(count=max(bench.sizes.queued, queues), queues=queues)
    theirs = Jobs(count=max(bench.sizes.queued_node, queues), queues=queues)
    in_time = How(limit_seconds=bench.sizes.limit_seconds, watched=True)
    return Row(
        name=f"queues-{queues}",
        title=f"Drain trivial jobs in {queues:,} named queue{'s' if queues > 1 else ''}",
        sides={
            "gw": lambda: drain(bench, Gw(), ours),
            "Node tuned": lambda: drain(bench, node_tuned(), theirs, in_time),
            "Node unbatched": lambda: drain(bench, NODE_UNBATCHED, theirs, in_time),
        },
        goals=(Goal(figure=RATE, at_least=AT_LEAST),),
    )


def _without_statistics(bench: Bench, queues: int) -> Row:
    jobs = Jobs(count=max(bench.sizes.queued, queues), queues=queues)
    how = How(analyze=False, prepare=_keep_statistics_missing, limit_seconds=4 * bench.sizes.limit_seconds)
    return Row(
        name=f"queues-{queues}-unanalyzed",
        title=f"Drain trivial jobs in {queues:,} named queues, statistics missing",
        sides={"gw": lambda: drain(bench, Gw(), jobs, how)},
        goals=(Goal(figure=RATE, at_least=AT_LEAST),),
    )


def _keep_statistics_missing(url: str) -> int:
    for table in ("_private_jobs", "_private_job_queues"):
        ask(url, f"alter table graphile_worker.{table} set (autovacuum_enabled = off)")
    return 0


def _stuck(bench: Bench, name: str, what: str, *, queues: int) -> Row:
    free = Jobs(count=bench.sizes.free, queues=queues)
    fewer = Jobs(count=min(bench.sizes.free, bench.sizes.queued_node), queues=queues)
    # A claim that walks past every stuck job is slow without end.
    limit = 4 * bench.sizes.limit_seconds
    return Row(
        name=name,
        title=f"{bench.sizes.stuck:,} jobs stuck behind two held queues ahead of {bench.sizes.free:,} {what}",
        sides={
            "gw": lambda: _behind_stuck_ones(bench, Gw(), free, How(limit_seconds=limit)),
            "gw, nothing stuck": lambda: drain(bench, Gw(), free),
            "Node tuned": lambda: _behind_stuck_ones(
                bench, node_tuned(), fewer, How(limit_seconds=limit, watched=True)
            ),
        },
        goals=(Goal(figure=RATE, beside="gw, nothing stuck", at_least=0.7),),
    )


def _behind_stuck_ones(bench: Bench, contender: Contender, free: Jobs, how: How) -> Measured:
    def hold_two_queues(url: str) -> int:
        contender.fill(url, Jobs(count=bench.sizes.stuck, queues=2, queue_prefix=HELD))
        ask(url, "update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'somebody else'")
        return bench.sizes.stuck

    return drain(bench, contender, free, replace(how, prepare=hold_two_queues))
