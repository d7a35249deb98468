"""The demo queue: evolves the same way each time, answers like a real one, and runs actions."""

from __future__ import annotations

import pytest

from gw_core import JobSpec, JobState, Selection
from gw_core.operations import JobVersion, NameKind
from gw_tui.actions import actions
from gw_tui.data.demo import DemoSource, FixedClock


def lived(seconds: int) -> DemoSource:
    """Return a queue that has lived for a while."""
    clock = FixedClock()
    source = DemoSource(clock)
    clock.advance(seconds)
    source.snapshot()
    return source


def test_it_lives_the_same_way_each_time() -> None:
    assert lived(60).queue.jobs == lived(60).queue.jobs
    assert lived(60).queue.jobs != lived(61).queue.jobs


def test_it_stands_still_with_its_clock() -> None:
    source = DemoSource()

    assert source.snapshot() == source.snapshot()


def test_all_states_are_there_and_the_numbers_agree() -> None:
    source = lived(30)
    snapshot, statistics = source.snapshot(), source.statistics()

    assert all(count.value for count in statistics.states.values())
    assert statistics.states[JobState.READY].value == snapshot.ready.value
    assert statistics.states[JobState.RUNNING] == snapshot.running
    assert sum(worker.jobs for worker in source.workers()) == snapshot.running.value
    assert any(worker.is_stale for worker in snapshot.workers)


@pytest.mark.parametrize("state", [None, *JobState])
def test_pages_hold_every_job_once(state: JobState | None) -> None:
    source = lived(10)
    wanted = Selection.of(state=state)
    seen, after = [], None
    while True:
        page = source.page(wanted, after=after, limit=37)
        seen += [each.job.id for each in page.jobs]
        if (after := page.after) is None:
            break

    assert len(seen) == len(set(seen))
    assert set(seen) == {each.job.id for each in source.queue.states() if state in (None, each.state)}


def seen_of(source: DemoSource, state: JobState) -> list[JobVersion]:
    return [JobVersion.from_job(each.job) for each in source.page(Selection.of(state=state), with_payload=True).jobs]


def test_acts_do_what_they_say_and_leave_alone_what_has_changed() -> None:
    source = lived(5)
    failed, ready = seen_of(source, JobState.FAILED), seen_of(source, JobState.READY)
    running = seen_of(source, JobState.RUNNING)[0]

    retried = source.run(actions.Retry(jobs=[failed[0], running]))
    again = source.run(actions.Retry(jobs=[failed[0]]))
    removed = source.run(actions.Complete(jobs=[ready[0]]))
    restored = source.run(actions.Restore(jobs=removed.removed))

    assert retried.done == (str(failed[0].id),)
    assert [each.why for each in retried.skipped] == [f"locked by {running.locked_by}"]
    assert "attempts" in again.skipped[0].why
    assert source.job(ready[0].id) is None
    assert source.job(int(restored.done[0])) is not None


def test_a_sweep_says_first_and_does_then() -> None:
    source = lived(0)
    stale = [worker.id for worker in source.workers() if worker.is_stale]

    said = source.run(actions.Sweep(dry_run=True))
    assert [worker.id for worker in source.workers() if worker.is_stale] == stale
    done = source.run(actions.Sweep())

    assert list(said.done) == list(done.done) == stale
    assert not any(worker.is_stale for worker in source.workers())


def test_added_jobs_and_names_are_there() -> None:
    source = lived(0)
    (number,) = source.run(actions.Add(spec=JobSpec(task="mail", queue_name="q", payload={"a": 1}))).done

    assert source.job(int(number)).job.payload == '{"a":1}'
    assert "q" in source.names(NameKind.QUEUES)
    assert "q" in [queue.name for queue in source.queues()]
