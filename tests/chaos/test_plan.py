"""The plan of a run: the same for the same seed, and with everything in it that was asked for."""

from __future__ import annotations

from collections import Counter

from .plan import OPERATIONS, SERVER_FAULTS, WORKER_FAULTS, make_load, make_plan, usual_counts


def test_the_same_seed_makes_the_same_plan() -> None:
    counts = usual_counts(60, with_standby=True)

    assert make_plan(7, seconds=60, counts=counts) == make_plan(7, seconds=60, counts=counts)
    assert make_plan(7, seconds=60, counts=counts) != make_plan(8, seconds=60, counts=counts)
    assert make_load(7, seconds=60) == make_load(7, seconds=60)


def test_a_plan_has_everything_that_was_asked_for_within_its_time() -> None:
    counts = {"kill": 20, "crash": 5, "failover": 2}
    plan = make_plan(1, seconds=60, counts=counts)

    assert Counter(action.what for action in plan) == counts
    assert all(0 < action.at < 60 for action in plan)
    assert [action.at for action in plan] == sorted(action.at for action in plan)


def test_what_is_usual_in_a_minute_happens_less_often_in_a_shorter_run_but_happens() -> None:
    assert usual_counts(60, with_standby=True) == {**WORKER_FAULTS, **SERVER_FAULTS, **OPERATIONS}
    assert min(usual_counts(5, with_standby=True).values()) == 1
    assert {"failover", "lonely"}.isdisjoint(usual_counts(60, with_standby=False))


def test_a_load_adds_up_to_all_jobs() -> None:
    assert abs(sum(make_load(3, seconds=60)) - 1) < 1e-9
