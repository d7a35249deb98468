"""Groups when answers get lost: the last job is added exactly once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.database_proxy import DatabaseProxy
from support.queue_fixture import QueueFixture, RunRecord, ms
from support.waiting import wait_until

from gw_core import JobSpec
from gw_core.events import PoolListening


@pytest.fixture
def proxy(site: QueueFixture) -> Iterator[DatabaseProxy]:
    proxy = DatabaseProxy(site.url)
    yield proxy
    proxy.close()


@pytest.mark.parametrize("mark", ["_private_gw_end_members", "delete from"], ids=["end of members", "settling"])
def test_a_lost_answer_adds_the_last_job_once(site: QueueFixture, proxy: DatabaseProxy, mark: str) -> None:
    ran = RunRecord()
    with site.running({"work": ran, "last": ran}, url=proxy.url, poll_interval=ms(50)) as running:
        running.recorded.wait_for(PoolListening)
        for number in range(1, 4):
            loss = proxy.lose_next("gw:settle", mark=mark)
            specs = [JobSpec(task="work", payload={"n": 0}) for _ in range(100)]
            site.client.group(specs, then=JobSpec(task="last", payload={"n": number}))
            assert loss.happened.wait(60)
            proxy.cut()
            proxy.restore()
            # A worker does this once a minute.
            site.run("update _private_gw_waiting set checked_at = now() - interval '1 hour'")
            wait_until(lambda: _has_ended(site), what=f"group {number}")

    assert [ran.entries.count(number) for number in range(1, 4)] == [1, 1, 1]
    assert (ran.entries.count(0), site.jobs()) == (300, [])


def _has_ended(site: QueueFixture) -> bool:
    site.run("select _private_gw_end_members(null)")
    site.run("update _private_gw_waiting set checked_at = now() - interval '1 hour'")
    return site.client.waiting_groups() == [] and site.jobs() == []
