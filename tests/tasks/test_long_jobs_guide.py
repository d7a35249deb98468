"""What the guide to long jobs shows works as written."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from support.queue_fixture import QueueFixture
from support.task_builders import write
from support.waiting import wait_until

from gw_core import TaskRegistry
from gw_core.events import JobReturned
from gw_core.front_ends import load_folder

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "long-jobs.md"
FILE = re.compile(r"^```python\n(# (\S+)\n.*?)^```$", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"^```python\n(from gw_core.testing.*?)^```$", re.MULTILINE | re.DOTALL)
DEPLOYMENTS = 10


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskRegistry:
    for text, name in FILE.findall(GUIDE.read_text()):
        write(tmp_path / name, text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return load_folder(tmp_path / "tasks", strict=True).registry


def test_the_order_charges_once(site: QueueFixture, tasks: TaskRegistry, capsys: pytest.CaptureFixture[str]) -> None:
    site.client.add("order", {"amount": 5, "address": "home", "email": "ann@example.com"})
    assert site.run_once(tasks).completed == 1
    assert capsys.readouterr().out == "mail to ann@example.com about charge-5 and label for home\n"


@pytest.mark.parametrize("task", ["import_rows", "transfer"])
def test_a_job_with_one_attempt_lives_through_ten_deployments(
    site: QueueFixture, tasks: TaskRegistry, capsys: pytest.CaptureFixture[str], task: str
) -> None:
    site.run("drop table if exists public.copied; create table public.copied (number integer primary key)")
    site.run(f"alter database {site.hands.info.dbname} set search_path = public")
    job = site.client.add(task, {"rows": 10_000_000}, max_attempts=1)
    rows = 0
    for _ in range(DEPLOYMENTS):
        with site.running(tasks) as worker:
            wait_until(lambda: cursor(site, job.id) > rows, what="progress")  # noqa: B023 - called here
            worker.stop()
            assert len(worker.recorded.of(JobReturned)) == 1
        rows = cursor(site, job.id)
    site.run("update _private_jobs set payload = json_build_object('rows', %s::int)", rows + 3)

    assert site.run_once(tasks).completed == 1
    written = [int(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    written += [row["number"] for row in site.run("select number from public.copied order by number")]
    assert written == list(range(rows + 3))


def cursor(site: QueueFixture, job_id: int) -> int:
    steps = site.client.jobs.steps(job_id)
    return steps[0].value if steps else 0


def test_the_test_of_the_guide_passes(tasks: TaskRegistry) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "tasks"]:
        del sys.modules[name]
    [program] = TEST.findall(GUIDE.read_text())
    exec(program, {})  # noqa: S102 - of the guide
