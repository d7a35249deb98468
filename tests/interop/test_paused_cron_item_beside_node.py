"""A paused cron item adds no job in gw's workers; a worker of Node.js with the same crontab still adds its jobs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from mixed_workers import NOTES, Kind, MixedQueue, Row
from support.node_worker import NEWEST

pytestmark = [pytest.mark.interop, pytest.mark.acceptance]

CRONTAB = """
* * * * * noted ?id=paused&fill=1h {item: "paused"}
* * * * * noted ?id=other&fill=1h {item: "other"}
"""
MISSED = 20
PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "compatibility.md").read_text("utf-8")


def of_item(item: str) -> str:
    return f"ended is not null and payload->>'item' = '{item}'"


def minutes(entries: list[Row]) -> int:
    return len({entry["run_at"] for entry in entries})


def test_node_adds_the_jobs_of_a_paused_cron_item(site: MixedQueue, tmp_path: Path) -> None:
    """The items ran last 20 minutes ago, so a worker adds the missed runs when it starts."""
    crontab = tmp_path / "crontab"
    crontab.write_text(CRONTAB)
    last = site.now().replace(second=0, microsecond=0) - timedelta(minutes=MISSED)
    for item in ("paused", "other"):
        site.run("insert into _private_known_crontabs values (%s, %s, %s)", item, last, last)
    site.client.pauses.pause("cron:paused")
    options = ["--crontab", str(crontab), "--poll-interval", "50"]

    with site.gw_running({"noted": NOTES["python"]}, *options):
        site.wait_for(MISSED, of_item("other"))
        site.wait_until_settled()
        assert site.ledger(of_item("paused")) == []

        with Kind(NEWEST).node.running(site.url, {"noted": NOTES["node"]}, *options):
            site.wait_for(MISSED, of_item("paused"))
            site.wait_until_settled()

    # Each run was added once.
    assert all(minutes(found) == len(found) for found in map(site.ledger, map(of_item, ("paused", "other"))))
    assert "A Node.js or Rust worker with the same crontab still adds the jobs of a paused cron item" in PAGE
