"""Named queues: many jobs in one, jobs in many, and jobs behind locked queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from bench.harness import Benchmark, Goal, Measured
from bench.measure import RATE, Bench, RunOptions, drain
from bench.peers import Gw, Jobs, Node, Peer, node_tuned
from bench.server import ask

AT_LEAST: Final = 20_000
HELD: Final = "held-"
MIN_SAMPLES_FOR_STATISTICS: Final = 10
"""With fewer queues than this there is nothing that a plan made without statistics could get wrong."""
NODE_UNBATCHED: Final = Node({"concurrentJobs": 24, "maxPoolSize": 25}, log_success=False)


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """Few and many queues, with statistics and without, and free jobs behind stuck ones."""
    many = [count for count in bench.scale.queues if count >= MIN_SAMPLES_FOR_STATISTICS]
    return (
        *(_queues(bench, count) for count in bench.scale.queues),
        *(_without_statistics(bench, count) for count in many),
        _stuck(bench, "stuck", "free ones without a queue", queues=0),
        _stuck(bench, "stuck-queued", "free ones in 1,000 queues", queues=1_000),
    )


def _queues(bench: Bench, queues: int) -> Benchmark:
    # No queue stays without a job, or there would be fewer than in the title.
    ours = Jobs(count=max(bench.scale.queued, queues), queues=queues)
    theirs = Jobs(count=max(bench.scale.queued_node, queues), queues=queues)
    in_time = RunOptions(limit_seconds=bench.scale.limit_seconds, watched=True)
    return Benchmark(
        name=f"queues-{queues}",
        title=f"Drain trivial jobs in {queues:,} named queue{'s' if queues > 1 else ''}",
        sides={
            "gw": lambda: drain(bench, Gw(), ours),
            "Node tuned": lambda: drain(bench, node_tuned(), theirs, in_time),
            "Node unbatched": lambda: drain(bench, NODE_UNBATCHED, theirs, in_time),
        },
        goals=(Goal(figure=RATE, at_least=AT_LEAST),),
    )


def _without_statistics(bench: Bench, queues: int) -> Benchmark:
    jobs = Jobs(count=max(bench.scale.queued, queues), queues=queues)
    options = RunOptions(analyze=False, prepare=_keep_statistics_missing, limit_seconds=4 * bench.scale.limit_seconds)
    return Benchmark(
        name=f"queues-{queues}-unanalyzed",
        title=f"Drain trivial jobs in {queues:,} named queues, statistics missing",
        sides={"gw": lambda: drain(bench, Gw(), jobs, options)},
        goals=(Goal(figure=RATE, at_least=AT_LEAST),),
    )


def _keep_statistics_missing(url: str) -> int:
    for table in ("_private_jobs", "_private_job_queues"):
        ask(url, f"alter table graphile_worker.{table} set (autovacuum_enabled = off)")
    return 0


def _stuck(bench: Bench, name: str, what: str, *, queues: int) -> Benchmark:
    free = Jobs(count=bench.scale.free, queues=queues)
    fewer = Jobs(count=min(bench.scale.free, bench.scale.queued_node), queues=queues)
    # A claim that walks past every stuck job is slow without end.
    limit = 4 * bench.scale.limit_seconds
    return Benchmark(
        name=name,
        title=f"{bench.scale.stuck:,} jobs stuck behind two locked queues ahead of {bench.scale.free:,} {what}",
        sides={
            "gw": lambda: _behind_stuck_ones(bench, Gw(), free, RunOptions(limit_seconds=limit)),
            "gw, nothing stuck": lambda: drain(bench, Gw(), free),
            "Node tuned": lambda: _behind_stuck_ones(
                bench, node_tuned(), fewer, RunOptions(limit_seconds=limit, watched=True)
            ),
        },
        goals=(Goal(figure=RATE, beside="gw, nothing stuck", at_least=0.7),),
    )


def _behind_stuck_ones(bench: Bench, peer: Peer, free: Jobs, options: RunOptions) -> Measured:
    def hold_two_queues(url: str) -> int:
        peer.fill(url, Jobs(count=bench.scale.stuck, queues=2, queue_prefix=HELD))
        ask(url, "update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'another worker'")
        return bench.scale.stuck

    return drain(bench, peer, free, replace(options, prepare=hold_two_queues))
