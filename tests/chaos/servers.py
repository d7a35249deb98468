"""Two PostgreSQL servers of our own, of which one follows the other: crashed, stopped, promoted and brought back."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psycopg
from support.accounts import account_for, take_over
from support.server_processes import end_orphans, forget_dead_server, is_ready, processes_of, server_pid

from gw_core.embedded.binaries import find_binaries, runnable

from .cleanup_guard import Guard
from .stall_detector import wait_for

DATABASE: Final = "chaos"
TIMEOUT: Final = 60.0
# Below the numbers the kernel gives to connections, so that no client takes a port while its server is down.
PORTS: Final = range(20_000, 30_000)
SETTINGS: Final = """
max_connections = 200
shared_buffers = 64MB
# Only processes are killed here, and what a killed process has written is in the kernel's hands.
fsync = off
max_wal_senders = 6
wal_keep_size = 512MB
wal_log_hints = on
hot_standby = on
wal_receiver_status_interval = 1s
wal_retrieve_retry_interval = 200ms
unix_socket_directories = ''
log_min_messages = warning
log_line_prefix = '%m [%p] %a '
include_if_exists = 'role.conf'
"""


class ServerFailedError(Exception):
    """A server of the run could not do what was asked of it, so the run proves nothing."""


class Server:
    """One server: its data, its port and its process, if it runs."""

    def __init__(self, name: str, folder: Path, guard: Guard, *, addresses: tuple[str, ...] = ("127.0.0.1",)) -> None:
        self.name = name
        self.home = folder / name
        self.data = self.home / "data"
        self.port = free_port()
        self._addresses = addresses
        self._guard = guard
        self.home.mkdir()
        self._account = account_for(self.data)
        self._binaries = runnable(find_binaries(None, major=None, folder=self.home), self._account)
        self._process: subprocess.Popen[bytes] | None = None
        take_over(self.home, self._account)

    @property
    def version(self) -> int:
        return self._binaries.major

    @property
    def programs(self) -> Path:
        return self._binaries.folder

    def conninfo(self, database: str = "postgres") -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={database} connect_timeout=30"

    def execute(self, statement: str, *values: Any, database: str = "postgres") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.conninfo(database), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)  # type: ignore[arg-type] # ours, not a caller's
            return cursor.fetchall() if cursor.description else []

    # -- making -------------------------------------------------------------------------------------------------------

    def create(self) -> None:
        self._run("initdb", "-D", self.data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(SETTINGS)
        with (self.data / "pg_hba.conf").open("a") as file:
            file.write("host all all samenet trust\nhost replication all samenet trust\n")

    def copy_from(self, other: Server) -> None:
        """Become a fresh copy of another server, to follow it."""
        shutil.rmtree(self.data, ignore_errors=True)
        self._run(
            *("pg_basebackup", "-D", self.data, "-h", "127.0.0.1", "-p", other.port, "-U", "postgres"),
            *("-X", "stream", "-c", "fast", "--no-sync"),
        )
        self.follow(other)

    def rewind_to(self, other: Server) -> None:
        """Throw away what the other server never got, to follow it."""
        forget_dead_server(self.data)
        (self.data / "standby.signal").unlink(missing_ok=True)
        self._run("pg_rewind", "-D", self.data, f"--source-server={other.conninfo()}", "--no-sync")
        self.follow(other)

    def follow(self, other: Server) -> None:
        (self.data / "standby.signal").touch()
        self.write_role(f"primary_conninfo = '{other.conninfo()} application_name={self.name}'\n")
        take_over_all(self.data, self._account.switch)

    def write_role(self, text: str) -> None:
        (self.data / "role.conf").write_text(text)

    # -- running ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        end_orphans(self.data)
        forget_dead_server(self.data)
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(self._binaries.postgres, "-D", str(self.data), "-p", str(self.port)),
                    *("-c", f"listen_addresses={','.join(self._addresses)}"),
                ],
                **self._account.switch,
                cwd="/",
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._guard.started(self._process.pid)
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        process = self._process
        assert process is not None
        deadline = time.monotonic() + TIMEOUT
        while not (server_pid(self.data) == process.pid and is_ready(self.data)):
            if process.poll() is not None or time.monotonic() > deadline:
                raise ServerFailedError(f"server {self.name} did not start; {self.last_words()}")
            time.sleep(0.01)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT is PostgreSQL's fast way, SIGQUIT its immediate one, SIGKILL a crash."""
        process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(how)
        try:
            process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        end_orphans(self.data)
        self._guard.ended(process.pid)
        self._process = None

    def reload(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    def last_words(self) -> str:
        try:
            return "its log ends: " + (self.home / "log").read_text(errors="replace")[-1500:]
        except OSError:
            return "it has no log"

    def _run(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [str(self._binaries.folder / program), *map(str, arguments)],
            **self._account.switch,
            cwd="/",
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
        )
        if done.returncode != 0:
            raise ServerFailedError(f"{program} for server {self.name} failed: {done.stderr.strip()[-1500:]}")


class Cluster:
    """A primary and a standby with synchronous replication; what happens to them happens here, one thing at a time."""

    def __init__(
        self, folder: Path, guard: Guard, *, with_standby: bool, addresses: tuple[str, ...] = ("127.0.0.1",)
    ) -> None:
        names = ("alpha", "beta") if with_standby else ("alpha",)
        self.servers = [Server(name, folder, guard, addresses=addresses) for name in names]
        self.primary = self.servers[0]
        self.on_new_primary: list[Callable[[Server], None]] = []
        self._turn = threading.RLock()  # held while something happens to the servers

    @property
    def standby(self) -> Server | None:
        others = [server for server in self.servers if server is not self.primary]
        return others[0] if others else None

    def conninfo(self, ports: list[int] | None = None, *, host: str = "127.0.0.1") -> str:
        """Lead to whichever server takes writes; `ports` are those of a road to the servers."""
        ports = ports or [server.port for server in self.servers]
        hosts = ",".join([host] * len(ports))
        return (
            f"host={hosts} port={','.join(map(str, ports))} user=postgres dbname={DATABASE}"
            " target_session_attrs=read-write connect_timeout=3 sslmode=disable gssencmode=disable"
        )

    def create(self) -> None:
        self.primary.create()
        self.primary.start()
        self.primary.execute(f"create database {DATABASE}")
        if self.standby is not None:
            self.standby.copy_from(self.primary)
            self.standby.start()
            self._make_synchronous()

    def close(self) -> None:
        with self._turn:
            for server in self.servers:
                server.stop(signal.SIGQUIT)

    # -- what may happen ----------------------------------------------------------------------------------------------

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Keep the servers as they are for a short time."""
        with self._turn:
            yield

    def restart(self, how: signal.Signals, *, down_for: float) -> None:
        """Stop or crash the primary, and start it again on the same data."""
        with self._turn:
            self.primary.stop(how)
            time.sleep(down_for)
            self.primary.start()

    def crash_a_backend(self) -> None:
        """Kill one of the primary's processes, whereupon the server ends all others and recovers."""
        with self._turn:
            pids = self.primary.execute(
                "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"
                " and datname = %s order by random() limit 1",
                DATABASE,
            )
            for (pid,) in pids:
                os.kill(pid, signal.SIGKILL)
                # The server answers until it has noticed, which is when it removes the process.
                wait_for(lambda pid=pid: not os.path.exists(f"/proc/{pid}"), TIMEOUT)
            self._wait_for_answer()

    def stall(self, seconds: float) -> None:
        """Freeze the primary with all its processes: nothing is closed, rejected or answered."""
        with self._turn:
            frozen = processes_of(self.primary.data)
            for pid in frozen:
                _signal(pid, signal.SIGSTOP)
            try:
                time.sleep(seconds)
            finally:
                for pid in frozen:
                    _signal(pid, signal.SIGCONT)

    def lose_standby(self, seconds: float) -> None:
        """Stop the standby for a while, in which no commit is confirmed."""
        standby = self.standby
        assert standby is not None
        with self._turn:
            standby.stop(signal.SIGQUIT)
            time.sleep(seconds)
            standby.start()
            self._wait_until_synchronous()

    def fail_over(self, how: signal.Signals, *, noticed_after: float) -> Server:
        """Let the primary die and, when a client has noticed, promote the standby; returns the old primary."""
        old, new = self.primary, self.standby
        assert new is not None
        with self._turn:
            self._wait_until_synchronous()
            old.stop(how)
            time.sleep(noticed_after)
            self._promote(new)
        return old

    def bring_back(self, old: Server, *, by_rewinding: bool) -> str:
        """Make an old primary the standby of the new one; returns how that was done."""
        with self._turn:
            if by_rewinding:
                try:
                    self.primary.execute("checkpoint")  # pg_rewind reads the new timeline from there
                    old.rewind_to(self.primary)
                except ServerFailedError:
                    by_rewinding = False
            if not by_rewinding:
                old.copy_from(self.primary)
            old.start()
            self._make_synchronous()
        return "rewinding" if by_rewinding else "a new copy"

    def terminate_backends(self, rng: random.Random) -> int:
        """End some connections of workers, as an administrator does; returns how many."""
        share = rng.choice([0.3, 1.0])
        with self._turn:
            ended = self.primary.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name like %s and random() < %s",
                "gw:%",
                share,
            )
        return len(ended)

    def lock_jobs(self, seconds: float) -> None:
        """Lock the table of jobs exclusively, as a session does that alters it.

        A limit by field may build its index at this time. It waits for this session and this session for it, so the
        server aborts one of the two.
        """
        with self._turn:
            self._wait_for_answer()
            with (
                suppress(psycopg.errors.DeadlockDetected),
                psycopg.connect(self.primary.conninfo(DATABASE)) as connection,
            ):
                connection.execute("lock table graphile_worker._private_jobs in access exclusive mode")
                time.sleep(seconds)

    # -- how ----------------------------------------------------------------------------------------------------------

    def _promote(self, new: Server) -> None:
        new.write_role("")
        new.reload()
        [(promoted,)] = new.execute(f"select pg_promote(true, {TIMEOUT:.0f})")
        if not promoted:
            raise ServerFailedError(f"server {new.name} could not be promoted; {new.last_words()}")
        self.primary = new
        for notify in self.on_new_primary:
            notify(new)

    def _make_synchronous(self) -> None:
        """From now on a commit that is answered is on both servers."""
        standby = self.standby
        assert standby is not None
        self._wait_for("select 1 from pg_stat_replication where application_name = %s and state = 'streaming'", standby)
        self.primary.write_role(f"synchronous_standby_names = '{standby.name}'\n")
        self.primary.reload()
        self._wait_until_synchronous()

    def _wait_until_synchronous(self) -> None:
        standby = self.standby
        assert standby is not None
        is_sync = "select 1 from pg_stat_replication where application_name = %s and sync_state = 'sync'"
        self._wait_for(is_sync, standby)
        # What was committed before it became synchronous must be there as well.
        [(written,)] = self.primary.execute("select pg_current_wal_lsn()::text")
        self._wait_for(f"{is_sync} and flush_lsn >= '{written}'::pg_lsn", standby)

    def _wait_for(self, question: str, standby: Server) -> None:
        deadline = time.monotonic() + TIMEOUT
        while True:
            with suppress(psycopg.OperationalError):
                if self.primary.execute(question, standby.name):
                    return
            if time.monotonic() > deadline:
                raise ServerFailedError(f"{standby.name} does not follow {self.primary.name}; {standby.last_words()}")
            time.sleep(0.05)

    def _wait_for_answer(self) -> None:
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                self.primary.execute("select 1", database=DATABASE)
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


# -- small things -----------------------------------------------------------------------------------------------------


def free_port() -> int:
    for port in random.SystemRandom().sample(PORTS, 200):
        with socket.socket() as taken:
            try:
                taken.bind(("", port))
            except OSError:
                continue
            return port
    raise ServerFailedError("no port is free for a server")


def take_over_all(folder: Path, switch: Mapping[str, Any]) -> None:
    """Make the account the owner of files that root wrote into its folder."""
    if switch:
        for name in ("standby.signal", "role.conf"):
            if (folder / name).exists():
                os.chown(folder / name, switch["user"], switch["group"])


def environment() -> dict[str, str]:
    """Ours without what would lead programs to another database."""
    left = ("PG", "LC_", "LANG", "GW_", "GRAPHILE_", "DATABASE_URL", "PYTHONSTARTUP")
    return {**{name: value for name, value in os.environ.items() if not name.startswith(left)}, "LC_ALL": "C"}
