"""The benchmark keeps working in miniature: the checks count, not the figures. All rows run in `make nightly`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytestmark = [pytest.mark.once, pytest.mark.timeout(900)]

CHECKOUT = Path(__file__).parents[2]
A_FEW = ("drain", "latency")
DRAINING = ("drain*", "queues-*", "stuck*", "backlog", "held-back", "unknown-tasks")


def run_bench(server: str, folder: Path, *arguments: str) -> dict[str, Any]:
    file = folder / "figures.json"
    common = ("--scale", "tiny", "--rounds", "1", "--database", server, "--json", str(file))
    done = subprocess.run(
        [sys.executable, "-m", "bench", *common, *arguments], cwd=CHECKOUT, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures: dict[str, Any] = json.loads(file.read_text())
    return figures


@pytest.mark.slow
@pytest.mark.parametrize(
    "which",
    [pytest.param(DRAINING, id="draining"), pytest.param([f"--without={each}" for each in DRAINING], id="the others")],
)
def test_every_benchmark_measures_gw_and_every_job_runs_exactly_once(
    server: str, tmp_path: Path, which: Sequence[str]
) -> None:
    figures = run_bench(server, tmp_path, "--alone", *which)

    sides = {
        (benchmark["name"], who): side
        for benchmark in figures["benchmarks"]
        for who, side in benchmark["sides"].items()
    }
    assert len(sides) > len(figures["benchmarks"]) > 8
    assert [name for name, side in sides.items() if not side["medians"]] == []


@pytest.mark.interop
def test_node_and_rust_are_measured_too_or_reported_missing(server: str, tmp_path: Path) -> None:
    figures = run_bench(server, tmp_path, *A_FEW)

    sides = {
        (benchmark["name"], who): side
        for benchmark in figures["benchmarks"]
        for who, side in benchmark["sides"].items()
    }
    rust = [side for (_, who), side in sides.items() if who == "Rust"]
    assert [side["wrong"] for side in rust] == [None, None]
    assert all(side["medians"] for side in rust) or "make rust-bench" in rust[0]["not_measured"]
    peers = [side for (_, who), side in sides.items() if who.startswith("Node")]
    assert {benchmark["name"] for benchmark in figures["benchmarks"]} == set(A_FEW)
    if shutil.which("npm") is None:
        assert {side["not_measured"] for side in peers} == {"npm is not installed"}
    else:
        assert all(side["medians"] for side in peers), peers


@pytest.mark.slow
def test_a_fleet_is_paused_and_replaced_without_losing_a_job(server: str, tmp_path: Path) -> None:
    sizes = ("--minutes", "0.2", "--workers", "2", "--rate", "50", "--scheduled", "1000")
    options = (*sizes, "--database", server, "--out", str(tmp_path / "fleet"))
    done = subprocess.run(
        [sys.executable, "-m", "bench.fleet_hour", *options], cwd=CHECKOUT, text=True, capture_output=True
    )

    assert done.returncode == 0, done.stdout + done.stderr
    minutes = json.loads((tmp_path / "fleet.json").read_text())["minutes"]
    drawn = ElementTree.parse(tmp_path / "fleet.svg").iter("{http://www.w3.org/2000/svg}polyline")
    assert {len(line.get("points", "").split()) for line in drawn} == {len(minutes)}


def test_an_unknown_benchmark_is_rejected_before_anything_starts() -> None:
    done = subprocess.run([sys.executable, "-m", "bench", "swim"], cwd=CHECKOUT, text=True, capture_output=True)

    assert done.returncode == 1
    assert done.stderr.strip() == "there is no benchmark 'swim'; --list prints those there are"


def test_gw_of_another_checkout_is_measured_in_the_same_run(server: str, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    for name in ("gw_cli", "gw_core", "gw_tui", "sql"):
        (earlier / name).symlink_to(CHECKOUT / name)
    (earlier / ".venv").symlink_to(sys.prefix)

    figures = run_bench(server, tmp_path, "drain", "--against", str(earlier))

    (benchmark,) = figures["benchmarks"]
    assert {who: bool(side["medians"]) for who, side in benchmark["sides"].items()} == {
        "gw": True,
        "gw of earlier": True,
    }
