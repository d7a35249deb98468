"""What `gw doctor` and `/metrics` report of the statistics."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.request import urlopen

from support.queue_fixture import QueueFixture
from support.waiting import wait_until

from gw_core import ProbeSettings
from gw_core.front_ends import CheckStatus
from gw_core.operations import Finding

WORKERS = """
insert into _private_gw_workers (id, started_at, last_heartbeat_at, host, pid, version, metadata)
select name || place, now(), now() - make_interval(mins => %s), 'h', 1, '1',
       json_build_object('statistics', name = 'records')
  from unnest(%s::text[]) with ordinality as workers (name, place)
"""
ROWS = """
insert into _private_gw_statistics
select date_trunc('minute', now()) - make_interval(mins => 9 * n), 'work', 'w', 1, 0, 0, 1.5,
       array_fill(0, array[17]), 1, 0
  from generate_series(1, 10) as n
"""


def finding(site: QueueFixture) -> Finding:
    (found,) = [each for each in site.client.doctor.findings() if each.check == "statistics"]
    return found


def test_the_doctor_says_that_nothing_is_recorded(site: QueueFixture) -> None:
    site.run(WORKERS, 0, ["other"])

    assert (finding(site).status, finding(site).message) == (
        CheckStatus.OK,
        "no live worker records statistics; there are none",
    )


def test_the_doctor_shows_the_size_and_the_times_of_the_statistics(site: QueueFixture) -> None:
    site.run(WORKERS, 0, ["records", "records"])
    site.run(ROWS)

    # It is 1h31m if a minute ends in between.
    assert finding(site).status is CheckStatus.OK
    assert re.match("live workers record statistics; 10 rows, less than 1 MB, from 1h3", finding(site).message)


def test_the_doctor_warns_if_only_some_of_the_live_workers_record(site: QueueFixture) -> None:
    site.run(WORKERS, 0, ["records", "other"])
    site.run(WORKERS, 60, ["dead"])

    assert (finding(site).status, finding(site).message) == (
        CheckStatus.WARNING,
        "1 of 2 live workers record no statistics, so charts leave out their jobs",
    )


def test_the_doctor_says_what_it_could_not_read(site: QueueFixture) -> None:
    site.run("alter table _private_gw_statistics rename column minute to hour")
    try:
        assert finding(site).status is CheckStatus.WARNING
        assert "not checked" in finding(site).message
    finally:
        site.run("alter table _private_gw_statistics rename column hour to minute")


def test_without_the_table_the_doctor_says_nothing(site: QueueFixture) -> None:
    site.run("alter table _private_gw_statistics rename to away")
    try:
        assert "statistics" not in {each.check for each in site.client.doctor.findings()}
    finally:
        site.run("alter table away rename to _private_gw_statistics")


def test_the_metrics_have_the_size_and_the_age_of_the_statistics(site: QueueFixture) -> None:
    site.run(ROWS)
    with site.running(
        {"work": lambda payload: None},
        probe=ProbeSettings(port=0, metrics=True, sample_interval=timedelta(seconds=1)),
        statistics=timedelta(hours=2),
    ) as running:

        def text() -> str:
            host, port = running.runner.probe_address or ("", 0)
            with urlopen(f"http://{host}:{port}/metrics") as answer:
                return str(answer.read(), "utf-8")

        wait_until(lambda: "gw_queue_statistics_workers 1.0" in text())
        shown = dict(line.rsplit(" ", 1) for line in text().splitlines() if line.startswith("gw_queue_statistics"))
        assert float(shown["gw_queue_statistics_bytes"]) > 0
        assert 540 <= float(shown["gw_queue_statistics_age_seconds"]) < 1200
