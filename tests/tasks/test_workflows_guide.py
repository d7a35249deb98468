"""What the guide to workflows shows works as written."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from support.queue_fixture import QueueFixture
from support.task_builders import write

from gw_core.front_ends import load_app

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "workflows.md"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_graph_of_the_guide_runs_in_its_order(
    site: QueueFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program, tasks = PYTHON.findall(GUIDE.read_text())
    write(tmp_path / "census.py", tasks)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("DATABASE_URL", site.url)
    monkeypatch.chdir(tmp_path)
    exec(program, {})  # noqa: S102 - of the guide

    assert site.client.jobs.count("state:waiting").jobs == 5
    assert site.run_once(load_app("census:registry")).completed == 6
    assert capsys.readouterr().out == "fetch 2026\nclean\ntotal 30\n"
