"""Patroni and etcd run as the account of the servers, wherever their environment is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from . import patroni


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes the account")
def test_the_servers_account_runs_a_program_that_only_root_can_read(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o700)
    program = hidden / "program"
    program.write_text("#!/bin/sh\nid -u\n")
    program.chmod(0o700)
    account = patroni.account_for(tmp_path / "data")

    done = subprocess.run(
        [*patroni.as_account(account.switch), str(program)], capture_output=True, text=True, check=True
    )

    assert account.uid != 0
    assert done.stdout == f"{account.uid}\n"


def test_a_run_without_patroni_names_both_ways_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert (message := patroni.missing()) is not None
    assert "patroni and etcd not found" in message
    assert "make chaos-ha" in message
    assert "apt-get install patroni etcd-server" in message
