"""What a command reports whose connection is lost: what was done, and what may be done too."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli_program import CliProgram
from support.database_proxy import DatabaseProxy
from support.queue_fixture import QueueFixture

from gw_cli import import_jobs
from gw_cli.bulk_command import Answer
from gw_core import Client
from gw_core.errors import DatabaseUnavailableError
from gw_core.operations import ActionResult

BATCH = 1_000
DOUBT = "The last change may be done, because the connection was lost; check before you repeat it."


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        ('add hello -p {"of":"add"}', '"of":"add"'),
        ('add hello -p {"of":"add"} --unique-for 1h', '"of":"add"'),
        ("cron run nightly", '"of":"cron"'),
        ("remove key", "COMMIT"),
        ("complete 1", "COMMIT"),
        ("reschedule 1 --attempts 0", "COMMIT"),
        ("cleanup failed-jobs --yes", "COMMIT"),
        ("pause task:hello", "COMMIT"),
        ("limit hello --running 1", "COMMIT"),
    ],
)
def test_a_command_admits_that_its_change_may_be_done(
    gw: CliProgram,
    site: QueueFixture,
    proxy: DatabaseProxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    mark: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tasks").mkdir()
    Path("crontab").write_text('0 3 * * * hello ?id=nightly {"of":"cron"}\n')
    site.add("hello", job_key="key")
    loss = proxy.lose_next("gw", mark=mark)

    ended = gw(*line.split(), "-c", proxy.url)

    assert loss.happened.is_set()
    assert (ended.code, ended.out) == (3, ""), ended
    *_, doubt, error = ended.err.splitlines()
    assert doubt == DOUBT
    assert error.startswith("gw: the database cannot be reached: ")


@pytest.mark.parametrize("committed", [True, False], ids=["after the commit", "before the commit"])
@pytest.mark.parametrize("lost", ["first", "second"])
def test_an_import_names_the_lines_whose_answer_is_missing(
    gw: CliProgram,
    site: QueueFixture,
    proxy: DatabaseProxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lost: str,
    committed: bool,
) -> None:
    monkeypatch.setattr(import_jobs, "BATCH", 2)
    jobs = tmp_path / "jobs.jsonl"
    jobs.write_text("".join(f'{{"task": "{task}"}}\n' for task in ("first", "first", "second", "second", "third")))
    proxy.lose_next("gw", mark=lost, committed=committed)

    ended = gw("add", "--from", str(jobs), "-c", proxy.url)

    assert (ended.code, ended.out) == (3, ""), ended
    note, doubt, error = ended.err.splitlines()
    assert doubt == DOUBT
    assert error.startswith("gw: the database ")
    first, last = (1, 2) if lost == "first" else (3, 4)
    assert f"he lines {first} to {last} may have been added too" in note
    assert ("Added 2 jobs of the lines up to 2, which stay" in note) == (lost == "second")
    assert len(site.jobs()) == first - 1 + (2 if committed else 0)


def test_an_action_admits_that_its_last_batch_may_be_done(
    gw: CliProgram, site: QueueFixture, proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.fill(BATCH + 1)
    take = Answer.take

    def take_and_lose_the_next(answer: Answer, batch: ActionResult) -> None:
        take(answer, batch)
        proxy.lose_next("gw", mark="COMMIT")

    monkeypatch.setattr(Answer, "take", take_and_lose_the_next)

    ended = gw("complete", "--all", "--yes", "-c", proxy.url)

    assert ended.code == 3
    assert "the jobs of the batch that was under way may be done too." in ended.err
    assert DOUBT in ended.err.splitlines()
    assert f"Completed {BATCH:,} jobs of {BATCH + 1:,} before this ended" in ended.err
    assert site.jobs() == []


@pytest.mark.parametrize("committed", [True, False], ids=["after the commit", "before the commit"])
def test_a_job_is_restored_once_although_the_answer_was_lost(
    site: QueueFixture, proxy: DatabaseProxy, committed: bool
) -> None:
    site.add(job_key="pay")
    removed = site.client.remove("pay")
    assert removed is not None
    with Client(proxy.url) as client:
        proxy.lose_next("gw", mark="COMMIT", committed=committed)
        with pytest.raises(DatabaseUnavailableError):
            client.jobs.restore(removed.job, by="anna")

        restored = client.jobs.restore(removed.job, by="anna")

    assert [job["id"] for job in site.jobs()] == [restored]
    assert [each.details for each in site.client.history.actions(restored)] == [{"former_id": removed.job.id}]
