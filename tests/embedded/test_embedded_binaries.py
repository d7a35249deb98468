"""Where the programs of a server come from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gw_core.embedded import binaries
from gw_core.embedded.account import Account
from gw_core.front_ends import EmbeddedError

NOBODY = Account(uid=65534, gid=65534, borrowed=True)
OURSELVES = Account(uid=os.geteuid(), gid=os.getegid(), borrowed=False)


def a_server(folder: Path, version: str = "16.4") -> Path:
    """Programs that say which version they are, and do no more."""
    folder.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (folder / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    found: list[Path] = []

    def search_paths() -> Iterator[Path]:
        yield from found

    monkeypatch.setattr(binaries, "search_paths", search_paths)
    return found


def test_the_folder_that_was_named_wins(tmp_path: Path, places: list[Path]) -> None:
    places.append(a_server(tmp_path / "found"))
    named = a_server(tmp_path / "named", "14.1")

    assert binaries.find_binaries(named, major=None, folder=tmp_path) == binaries.Binaries(named, 14)


def test_a_folder_without_a_server_is_rejected(tmp_path: Path, places: list[Path]) -> None:
    places.append(a_server(tmp_path / "found"))

    with pytest.raises(EmbeddedError, match="holds no postgres and initdb"):
        binaries.find_binaries(tmp_path, major=None, folder=tmp_path)


def test_existing_data_choose_the_version(tmp_path: Path, places: list[Path]) -> None:
    places += [a_server(tmp_path / "new", "18.0"), a_server(tmp_path / "old", "15.7")]

    assert binaries.find_binaries(None, major=15, folder=tmp_path).major == 15


def test_data_of_a_version_that_is_not_here_are_rejected_with_advice(tmp_path: Path, places: list[Path]) -> None:
    places += [a_server(tmp_path / "new", "18.0"), a_server(tmp_path / "old", "15.7")]

    with pytest.raises(EmbeddedError, match=r"belong to PostgreSQL 13, and only version 15, 18 was found.*--pg-bin"):
        binaries.find_binaries(None, major=13, folder=tmp_path)


def test_servers_too_old_for_the_schema_are_passed_over(tmp_path: Path, places: list[Path]) -> None:
    places += [a_server(tmp_path / "old", "11.22"), a_server(tmp_path / "new", "17beta1")]

    assert binaries.find_binaries(None, major=None, folder=tmp_path).major == 17


def test_programs_that_do_not_run_are_passed_over(tmp_path: Path, places: list[Path]) -> None:
    broken = a_server(tmp_path / "broken")
    (broken / "postgres").write_text("#!/bin/sh\nexit 1\n")
    places += [broken, a_server(tmp_path / "good")]

    assert binaries.find_binaries(None, major=None, folder=tmp_path).folder == tmp_path / "good"


@pytest.mark.usefixtures("places")
def test_finding_none_names_the_three_ways_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match=r"--pg-bin.*apt install postgresql.*graphile-worker\[embedded\]"):
        binaries.find_binaries(None, major=None, folder=tmp_path)


def test_the_extra_is_found_without_being_imported() -> None:
    import sys

    found = list(binaries.versions_in(binaries.bundled()))

    assert [server.major for server in found] == sorted({server.major for server in found}, reverse=True)
    assert found
    assert set(binaries.PACKAGES) & set(sys.modules) == set()


# -- copies ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, reachable: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(binaries, "_caches", lambda _account: iter([reachable / "cache"]))
    return reachable / "cache"


def test_programs_that_can_be_run_stay_where_they_are(reachable: Path, cache: Path) -> None:
    server = binaries.Binaries(a_server(reachable / "pg" / "bin"), 16)

    assert binaries.runnable(server, NOBODY) == server
    assert not cache.exists()


def test_programs_the_account_cannot_reach_are_copied_once(tmp_path: Path, cache: Path) -> None:
    tmp_path.chmod(0o700)
    server = binaries.Binaries(a_server(tmp_path / "package" / "pg" / "bin"), 16)
    (tmp_path / "package.libs").mkdir()
    (tmp_path / "package.libs" / "libpq.so").touch()

    copy = binaries.runnable(server, NOBODY)

    assert copy.folder.is_relative_to(cache)
    assert (copy.folder / "postgres").read_text() == (server.folder / "postgres").read_text()
    assert (copy.folder / "../../../package.libs/libpq.so").exists()
    assert binaries.runnable(server, NOBODY) == copy
    assert len(list(cache.iterdir())) == 1


def test_copying_changes_no_permission_of_the_original(tmp_path: Path, cache: Path) -> None:
    tmp_path.chmod(0o700)
    server = binaries.Binaries(a_server(tmp_path / "package" / "pg" / "bin"), 16)
    for program in ("postgres", "initdb"):
        (server.folder / program).chmod(0o700)

    copy = binaries.runnable(server, NOBODY)

    assert (server.folder / "postgres").stat().st_mode & 0o777 == 0o700
    assert (copy.folder / "postgres").stat().st_mode & 0o777 == 0o755
    assert tmp_path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ['say "hi"', "$HOME", "back`tick", "back\\slash"])
def test_programs_whose_path_a_shell_would_change_are_copied(name: str, tmp_path: Path, cache: Path) -> None:
    server = binaries.Binaries(a_server(tmp_path / name / name / "bin"), 16)

    copy = binaries.runnable(server, OURSELVES)

    assert copy.folder.is_relative_to(cache)
    assert name not in str(copy.folder)


def test_a_cache_that_others_may_write_to_is_not_trusted(tmp_path: Path, cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    tmp_path.chmod(0o700)
    server = binaries.Binaries(a_server(tmp_path / "package" / "pg" / "bin"), 16)

    with pytest.raises(EmbeddedError, match="not ours alone"):
        binaries.runnable(server, NOBODY)
