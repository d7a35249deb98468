"""`--processes auto`: as many as this process may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from gw_cli import cpus


@pytest.mark.parametrize(
    ("limit", "here", "expected"),
    [
        pytest.param("max 100000", 4, 4, id="no limit"),
        pytest.param("150000 100000", 4, 2, id="a share, rounded up"),
        pytest.param("20000 100000", 4, 1, id="less than one"),
        pytest.param("800000 100000", 4, 4, id="more than there are"),
        pytest.param("", 3, 3, id="nothing to read"),
    ],
)
def test_auto_counts_what_a_container_may_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str, here: int, expected: int
) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(limit)
    monkeypatch.setattr(cpus, "CGROUP_LIMIT", file)
    monkeypatch.setattr(cpus.os, "sched_getaffinity", lambda pid: set(range(here)), raising=False)

    assert cpus.usable_processors() == expected


def test_auto_without_a_limit_is_what_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cpus, "CGROUP_LIMIT", tmp_path / "nothing")
    monkeypatch.delattr(cpus.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(cpus.os, "cpu_count", lambda: None)

    assert cpus.usable_processors() == 1
