"""Starting, sharing and leaving an embedded server, and what becomes of it when a process is killed."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from server_users import Users, copy_data, extra_binaries, is_gone, is_held, programs_for, watchdogs_of
from support.accounts import account_for
from support.server_processes import processes_of, server_pid
from support.waiting import wait_until

from gw_core.embedded import binaries, start_or_attach
from gw_core.embedded.data_folder import DataFolder
from gw_core.embedded.server import path_for_server
from gw_core.front_ends import EmbeddedError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can lend the server another account")


def ask(conninfo: str, question: str) -> object:
    with psycopg.connect(conninfo, autocommit=True, connect_timeout=60) as connection:
        row = connection.execute(question.encode()).fetchone()
        assert row is not None
        return row[0]


def execute(conninfo: str, statement: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(statement.encode())


def answers(conninfo: str) -> bool:
    try:
        return ask(conninfo, "select 1") == 1
    except psycopg.OperationalError:
        return False


def postmaster(folder: Path) -> int:
    pid = server_pid(folder / "data")
    assert pid is not None
    return pid


def users_of(folder: Path) -> set[int]:
    """The users whom the server's processes run as; one that ends while we look does not count."""
    uids = set()
    for pid in processes_of(folder / "data"):
        with suppress(FileNotFoundError, ProcessLookupError):
            uids.add(os.stat(f"/proc/{pid}").st_uid)
    return uids


def watchdog_of(folder: Path) -> int:
    """The one process that has the watchdog's lock open."""
    [pid] = watchdogs_of(folder)
    return pid


# -- starting ---------------------------------------------------------------------------------------------------------


def test_a_first_start_makes_a_durable_private_server(folder: Path, pg_bin: Path) -> None:
    with start_or_attach(f"embedded://{folder}", pg_bin=pg_bin) as server:
        settings = {
            name: ask(server.conninfo, f"show {name}")
            for name in ("fsync", "synchronous_commit", "listen_addresses", "server_encoding", "max_connections")
        }

        assert settings == {
            "fsync": "on",
            "synchronous_commit": "on",
            "listen_addresses": "",
            "server_encoding": "UTF8",
            "max_connections": "200",
        }
        assert ask(server.conninfo, "select lower('ÄÖ') = 'äö' and 'Z' < 'a'") is True
        assert (folder / "data").stat().st_mode & 0o777 == 0o700
    assert is_gone(folder)


@pytest.mark.usefixtures("data")
def test_data_survive_a_stop(folder: Path) -> None:
    with start_or_attach(f"embedded://{folder}") as server:
        execute(server.conninfo, "create table kept as select 42 as answer")

    with start_or_attach(f"embedded://{folder}") as server:
        assert ask(server.conninfo, "select answer from kept") == 42


def test_the_folder_defaults_to_one_below_the_current(
    folder: Path, stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_data(stopped, folder / ".gw" / "postgres")
    monkeypatch.chdir(folder)

    with start_or_attach("embedded:") as server:
        assert server.folder == folder.resolve() / ".gw" / "postgres"
        assert answers(server.conninfo)
    assert is_gone(server.folder)


@pytest.mark.parametrize(
    ("name", "is_first"),
    [
        pytest.param('it\'s a "quoted" $HOME `x` \\ 50% #?& größe, 数据', True, id="spaces, quotes and unicode"),
        pytest.param("/".join(["long" * 50] * 3), False, id="600 bytes"),
        pytest.param("/".join(["long" * 50] * 8), True, id="1600 bytes"),
    ],
)
def test_any_path_will_do(folder: Path, stopped: Path, name: str, is_first: bool) -> None:
    place = folder.parent / name / "postgres"
    if not is_first:
        copy_data(stopped, place)

    with start_or_attach(f"embedded://{place}") as server:
        assert ask(server.conninfo, "select current_user") == "postgres"
        link = DataFolder(place).socket_folder
    assert is_gone(place)
    assert link == place / "data" or not link.is_symlink()


def test_a_link_that_another_user_put_in_our_place_is_not_followed(folder: Path, tmp_path: Path) -> None:
    place = Path("/tmp", "x" * 200)
    home = DataFolder(place)
    ours = home.socket_folder
    ours.unlink()
    ours.symlink_to(tmp_path)
    try:
        assert home.socket_folder != ours
        home.forget_link()
    finally:
        ours.unlink()


def test_a_folder_with_other_files_is_rejected_and_left_alone(folder: Path) -> None:
    folder.mkdir()
    (folder / "letter.txt").write_text("dear reader")

    with pytest.raises(EmbeddedError, match="holds other files"):
        start_or_attach(f"embedded://{folder}")
    assert [path.name for path in folder.iterdir()] == ["letter.txt"]


def test_the_data_folder_of_another_server_is_rejected(folder: Path) -> None:
    folder.mkdir()
    (folder / "PG_VERSION").write_text("15\n")

    with pytest.raises(EmbeddedError, match="data folder of another PostgreSQL"):
        start_or_attach(f"embedded://{folder}")


def test_a_folder_that_cannot_be_made_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(EmbeddedError, match="cannot be used: Not a directory"):
        start_or_attach(f"embedded://{tmp_path}/file/postgres")


@pytest.mark.usefixtures("data")
def test_a_start_that_fails_shows_the_end_of_the_log(folder: Path) -> None:
    with (folder / "data" / "postgresql.conf").open("a") as file:
        file.write("work_mem = 'a lot\x1b[31m'\n")

    with pytest.raises(EmbeddedError, match=r"did not start; the last lines of .*server\.log.*\n.*work_mem") as caught:
        start_or_attach(f"embedded://{folder}")
    assert "\x1b" not in str(caught.value)


@pytest.mark.usefixtures("data")
def test_data_of_a_version_we_have_no_programs_for_are_rejected(folder: Path) -> None:
    (folder / "data" / "PG_VERSION").write_text("12\n")

    with pytest.raises(EmbeddedError, match=r"belong to PostgreSQL 12.*--pg-bin"):
        start_or_attach(f"embedded://{folder}")


@pytest.mark.usefixtures("data")
def test_existing_data_are_served_by_their_own_version(folder: Path, pg_bin: Path) -> None:
    with start_or_attach(f"embedded://{folder}", pg_bin=pg_bin) as server:
        version = ask(server.conninfo, "show server_version")

    with start_or_attach(f"embedded://{folder}") as server:
        assert ask(server.conninfo, "show server_version") == version


def test_a_first_start_that_was_cut_short_is_done_again(folder: Path) -> None:
    DataFolder(folder).prepare()
    (folder / "lock").touch()
    (folder / "data.new").mkdir()
    (folder / "data.new" / "PG_VERSION").write_text("15\n")

    with start_or_attach(f"embedded://{folder}") as server:
        assert answers(server.conninfo)
    assert not (folder / "data.new").exists()


def test_the_callers_environment_does_not_lead_the_server_astray(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGDATA": "/nowhere", "PGPORT": "1", "LC_ALL": "xx_XX", "PGOPTIONS": "-c fsync=off"}.items():
        monkeypatch.setenv(name, value)

    with start_or_attach(f"embedded://{folder}") as server:
        monkeypatch.delenv("PGOPTIONS")
        assert ask(server.conninfo, "show fsync") == "on"


# -- sharing ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("data")
def test_uses_in_one_process_share_a_server_and_the_last_stops_it(folder: Path) -> None:
    first, second = (start_or_attach(f"embedded://{folder}") for _ in range(2))
    pid = postmaster(folder)

    first.close()
    first.close()
    assert ask(second.conninfo, "select 1") == 1
    assert postmaster(folder) == pid

    second.close()
    assert is_gone(folder)
    assert not answers(second.conninfo)


@pytest.mark.usefixtures("data")
def test_threads_that_start_concurrently_share_a_server(folder: Path) -> None:
    servers = []
    threads = [
        threading.Thread(target=lambda: servers.append(start_or_attach(f"embedded://{folder}"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({ask(server.conninfo, "select pg_postmaster_start_time()::text") for server in servers}) == 1
    for server in servers:
        server.close()


def test_eight_processes_that_start_concurrently_share_a_server(folder: Path, use: Users, pg_bin: Path) -> None:
    users = [use(folder, pg_bin) for _ in range(8)]

    assert len({ask(user.conninfo, "select pg_postmaster_start_time()::text") for user in users}) == 1
    for user in users[:-1]:
        user.leave()
    assert answers(users[-1].conninfo)
    users[-1].leave()
    assert is_gone(folder)


@pytest.mark.usefixtures("data")
def test_a_server_outlives_the_process_that_started_it(folder: Path, use: Users) -> None:
    starter = use(folder)
    pid = (starter.conninfo, postmaster(folder))[1]
    other = use(folder)

    assert answers(other.conninfo)
    starter.leave()
    assert answers(other.conninfo)
    assert postmaster(folder) == pid


@pytest.mark.usefixtures("data")
def test_coming_and_going_in_turns_never_meets_a_stopping_server(folder: Path, use: Users) -> None:
    def come_and_go() -> None:
        for _ in range(5):
            with start_or_attach(f"embedded://{folder}") as server:
                if not answers(server.conninfo):
                    missed.append(server)

    missed: list[object] = []
    threads = [threading.Thread(target=come_and_go) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert missed == []


@pytest.mark.usefixtures("data")
def test_ctrl_c_in_the_terminal_leaves_the_server_alone(folder: Path, use: Users) -> None:
    user = use(folder, start_new_session=True)
    conninfo = user.conninfo

    with start_or_attach(f"embedded://{folder}"):
        os.killpg(user.process.pid, signal.SIGINT)
        user.process.wait(timeout=60)
        assert answers(conninfo)


# -- when a process is killed -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("data")
def test_the_server_stops_when_its_only_user_is_killed(folder: Path, use: Users, pg_bin: Path) -> None:
    user = use(folder, pg_bin)
    assert answers(user.conninfo)

    user.kill()

    wait_until(lambda: is_gone(folder), deadline_seconds=60, what="the end of the unused server")
    assert "database system is shut down" in (folder / "server.log").read_text()


@pytest.mark.usefixtures("data")
def test_a_killed_user_does_not_count_when_the_others_leave(folder: Path, use: Users) -> None:
    killed, other = use(folder), use(folder)
    assert answers(killed.conninfo)
    assert answers(other.conninfo)

    killed.kill()
    assert answers(other.conninfo)
    other.leave()
    assert is_gone(folder)


@pytest.mark.usefixtures("data")
def test_a_killed_server_is_started_again_for_its_users(folder: Path, pg_bin: Path) -> None:
    with start_or_attach(f"embedded://{folder}", pg_bin=pg_bin) as server:
        execute(server.conninfo, "create table kept as select 42 as answer")
        killed = postmaster(folder)
        os.kill(killed, signal.SIGKILL)

        wait_until(
            lambda: server_pid(folder / "data") != killed and answers(server.conninfo),
            deadline_seconds=60,
            what="a restart",
        )
        assert ask(server.conninfo, "select answer from kept") == 42


@pytest.mark.usefixtures("data")
def test_who_comes_after_a_server_was_killed_finds_one_that_answers(folder: Path) -> None:
    with start_or_attach(f"embedded://{folder}"):
        os.kill(postmaster(folder), signal.SIGKILL)
        with start_or_attach(f"embedded://{folder}") as server:
            assert wait_until(lambda: answers(server.conninfo), deadline_seconds=60, what="an answer")


@pytest.mark.usefixtures("data")
def test_a_killed_watchdog_is_replaced_by_who_comes_next(folder: Path) -> None:
    first = start_or_attach(f"embedded://{folder}")
    pid, killed = postmaster(folder), watchdog_of(folder)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: not is_held(folder / "watchdog.lock"), what="the watchdog's end")

    second = start_or_attach(f"embedded://{folder}")

    assert watchdog_of(folder) != killed
    assert postmaster(folder) == pid
    first.close()
    second.close()
    assert is_gone(folder)


@pytest.mark.usefixtures("data")
def test_a_new_watchdog_restarts_the_server_it_found(folder: Path) -> None:
    with start_or_attach(f"embedded://{folder}") as server:
        pid = postmaster(folder)
        os.kill(watchdog_of(folder), signal.SIGKILL)
        wait_until(lambda: not is_held(folder / "watchdog.lock"), what="the watchdog's end")
        with start_or_attach(f"embedded://{folder}"):
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: answers(server.conninfo), deadline_seconds=60, what="a restart")


@pytest.mark.usefixtures("data")
def test_who_leaves_last_stops_the_server_of_a_killed_watchdog(folder: Path) -> None:
    server = start_or_attach(f"embedded://{folder}")
    os.kill(watchdog_of(folder), signal.SIGKILL)

    server.close()

    assert is_gone(folder)


@pytest.mark.usefixtures("data")
def test_everything_may_be_killed_together(folder: Path, use: Users, pg_bin: Path) -> None:
    user = use(folder, pg_bin)
    execute(user.conninfo, "create table kept as select 42 as answer")
    for pid in (watchdog_of(folder), postmaster(folder), user.process.pid):
        os.kill(pid, signal.SIGKILL)

    with start_or_attach(f"embedded://{folder}") as server:
        assert ask(server.conninfo, "select answer from kept") == 42


@pytest.mark.usefixtures("data")
def test_a_backend_that_computes_on_after_its_server_was_killed_is_ended(folder: Path, use: Users) -> None:
    user = use(folder)
    busy = psycopg.pq.PGconn.connect(user.conninfo.encode())
    backend = busy.backend_pid
    busy.send_query(b"select count(*) from generate_series(1, 1e12::bigint)")
    is_active = f"select state = 'active' from pg_stat_activity where pid = {backend}"
    wait_until(lambda: ask(user.conninfo, is_active), what="the query to run")
    for pid in (watchdog_of(folder), postmaster(folder), user.process.pid):
        os.kill(pid, signal.SIGKILL)
    busy.finish()

    with start_or_attach(f"embedded://{folder}") as server:
        assert answers(server.conninfo)
        assert backend not in processes_of(folder / "data")


@pytest.mark.usefixtures("data")
def test_a_pid_file_that_by_now_names_another_process_does_not_matter(folder: Path) -> None:
    with start_or_attach(f"embedded://{folder}"):
        text = (folder / "data" / "postmaster.pid").read_text().splitlines()
    (folder / "data" / "postmaster.pid").write_text("\n".join([str(os.getppid()), *text[1:], ""]))

    with start_or_attach(f"embedded://{folder}") as server:
        assert answers(server.conninfo)


@pytest.mark.usefixtures("data")
def test_a_server_that_was_started_manually_is_not_disturbed(folder: Path) -> None:
    account = account_for(folder / "data")
    opened = os.open(folder / "data", os.O_RDONLY)
    data = path_for_server(opened, folder / "data", account)
    started = subprocess.Popen(
        [programs_for(folder / "data") / "postgres", "-D", data, "-k", ".", "-c", "listen_addresses="],
        **account.switch,
        cwd="/",
        stderr=subprocess.DEVNULL,
        pass_fds=(opened,),
    )
    os.close(opened)
    try:
        wait_until(lambda: server_pid(folder / "data") == started.pid, what="the server that gw did not start")
        with pytest.raises(EmbeddedError, match="that gw did not start"):
            start_or_attach(f"embedded://{folder}")
        assert started.poll() is None
    finally:
        started.send_signal(signal.SIGINT)
        started.wait(timeout=60)


# -- accounts ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def ordinary() -> pwd.struct_passwd:
    """A user who is neither root nor the account that runs the server of root."""
    return next(entry for entry in pwd.getpwall() if entry.pw_uid not in (0, pwd.getpwnam("nobody").pw_uid))


@pytest.fixture
def python_for_all() -> str:
    """An interpreter that every user may run."""
    for path in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        if os.path.exists(path) and _runs_for_nobody(path):
            return path
    pytest.skip("no Python here can be run by every user")


def _runs_for_nobody(python: str) -> bool:
    """Whether the user nobody can run it, and it is new enough."""
    question = "import sys; sys.exit(sys.version_info < (3, 11))"
    anybody = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []}
    with suppress(PermissionError):
        done = subprocess.run([python, "-c", question], check=False, cwd="/", stderr=subprocess.DEVNULL, **anybody)
        return done.returncode == 0
    return False


@as_root
def test_root_lends_the_server_another_account(folder: Path, pg_bin: Path) -> None:
    with start_or_attach(f"embedded://{folder}", pg_bin=pg_bin) as server:
        assert answers(server.conninfo)
        account = account_for(folder / "missing" / "data")

        assert account.name in ("postgres", "nobody")
        assert users_of(folder) == {account.uid}
        assert f"Uid:\t{account.uid}\t" in Path(f"/proc/{watchdog_of(folder)}/status").read_text()


def permissions_above(place: Path) -> dict[Path, tuple[int, int, int]]:
    states = {path: path.stat() for path in place.parents if path.exists()}
    return {path: (state.st_mode, state.st_uid, state.st_gid) for path, state in states.items()}


@as_root
def test_root_changes_no_permission_outside_the_folder(tmp_path: Path) -> None:
    place = tmp_path / "mine" / "project" / ".gw" / "postgres"
    place.parent.mkdir(mode=0o700, parents=True)
    before = permissions_above(place)

    with start_or_attach(f"embedded://{place}") as server:
        assert answers(server.conninfo)

    assert permissions_above(place) == before
    assert is_gone(place)


@as_root
def test_programs_below_a_folder_of_roots_own_are_used_through_a_copy(
    folder: Path, tmp_path: Path, reachable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site-packages").mkdir(mode=0o700)
    package = extra_binaries().folder.parents[1]
    for tree in (package, package.with_name(f"{package.name}.libs")):
        if tree.exists():
            shutil.copytree(tree, tmp_path / "site-packages" / tree.name, copy_function=os.link)
    monkeypatch.setattr(binaries, "_caches", lambda _account: iter([reachable / "cache"]))
    programs = tmp_path / "site-packages" / package.name / extra_binaries().folder.relative_to(package)

    with start_or_attach(f"embedded://{folder}", pg_bin=programs) as server:
        assert answers(server.conninfo)
        executable = os.readlink(f"/proc/{postmaster(folder)}/exe")

    assert executable.startswith(str(reachable / "cache"))


@as_root
@pytest.mark.usefixtures("data")
def test_data_that_were_copied_as_root_are_given_to_the_servers_account(folder: Path) -> None:
    with start_or_attach(f"embedded://{folder}") as server:
        execute(server.conninfo, "create table kept as select 42 as answer")
    for place, folders, files in os.walk(folder / "data"):
        for name in (".", *folders, *files):
            os.lchown(os.path.join(place, name), 0, 0)

    with start_or_attach(f"embedded://{folder}") as server:
        assert ask(server.conninfo, "select answer from kept") == 42


@as_root
def test_an_ordinary_user_runs_the_server_as_himself(
    reachable: Path, use: Users, ordinary: pwd.struct_passwd, python_for_all: str, code_for_all: Path, pg_bin: Path
) -> None:
    place = reachable / "home of somebody"
    place.mkdir()
    os.chown(place, ordinary.pw_uid, ordinary.pw_gid)

    user = use(
        place / "postgres",
        programs_for(place, pg_bin),
        python=python_for_all,
        root=code_for_all,
        user=ordinary.pw_uid,
        group=ordinary.pw_gid,
        extra_groups=[],
        cwd="/",
    )

    assert answers(user.conninfo)
    assert users_of(place / "postgres") == {ordinary.pw_uid}
    with start_or_attach(f"embedded://{place / 'postgres'}") as server:
        user.leave()
        assert answers(server.conninfo)
    assert is_gone(place / "postgres")
    assert {path.stat().st_uid for path in (place / "postgres").iterdir()} == {ordinary.pw_uid}


@as_root
def test_root_starts_the_server_of_an_ordinary_users_folder_as_that_user(
    reachable: Path, use: Users, ordinary: pwd.struct_passwd, python_for_all: str, code_for_all: Path
) -> None:
    place = reachable / "home"
    place.mkdir()
    os.chown(place, ordinary.pw_uid, ordinary.pw_gid)
    theirs = {"user": ordinary.pw_uid, "group": ordinary.pw_gid, "extra_groups": [], "cwd": "/"}
    programs = programs_for(place)
    first = use(place / "postgres", programs, python=python_for_all, root=code_for_all, **theirs)
    assert answers(first.conninfo)
    first.leave()

    with start_or_attach(f"embedded://{place / 'postgres'}", pg_bin=programs) as server:
        assert answers(server.conninfo)
        assert os.stat(f"/proc/{postmaster(place / 'postgres')}").st_uid == ordinary.pw_uid
    second = use(place / "postgres", programs, python=python_for_all, root=code_for_all, **theirs)
    assert answers(second.conninfo)
    second.leave()
    assert is_gone(place / "postgres")


@as_root
def test_a_user_without_a_name_learns_what_initdb_needs(
    reachable: Path, use: Users, python_for_all: str, code_for_all: Path
) -> None:
    place = reachable / "home"
    place.mkdir()
    os.chown(place, 54321, 54321)
    programs = programs_for(place)

    user = use(
        place / "postgres",
        programs,
        python=python_for_all,
        root=code_for_all,
        user=54321,
        group=54321,
        extra_groups=[],
        cwd="/",
    )

    assert "user 54321 has no name" in user.answer["error"]
