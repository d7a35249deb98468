"""What an `embedded:` connection string means."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from gw_core import Client
from gw_core.embedded.address import conninfo_for, folder_of
from gw_core.front_ends import EmbeddedError


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        pytest.param("embedded:", True, id="the scheme alone"),
        pytest.param("embedded://", True, id="with slashes"),
        pytest.param("embedded:///some/path", True, id="an absolute path"),
        pytest.param("embedded:relative/path", True, id="a relative path"),
        pytest.param("embedded", False, id="a database of that name"),
        pytest.param("postgres://embedded:x@localhost/", False, id="a user of that name"),
    ],
)
def test_only_the_scheme_asks_for_an_embedded_server(connection: str, expected: bool) -> None:
    with Client(connection) as client:
        assert client.is_embedded is expected


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        pytest.param("embedded:", "/work space/.gw/postgres", id="the default"),
        pytest.param("embedded://", "/work space/.gw/postgres", id="the default, with slashes"),
        pytest.param("embedded:///some/path", "/some/path", id="absolute"),
        pytest.param("embedded:/some/path", "/some/path", id="absolute, without a host"),
        pytest.param("embedded:a/b", "/work space/a/b", id="relative"),
        pytest.param("embedded:../b", "/b", id="relative, upwards"),
        pytest.param("embedded:///a b/50%25,'\"é", "/a b/50%25,'\"é", id="characters taken as they stand"),
        pytest.param("embedded:~/pg", "/home/me/pg", id="the home folder"),
    ],
)
def test_a_connection_string_names_a_folder(connection: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr("os.getcwd", lambda: "/work space")

    assert folder_of(connection) == Path(expected)


@pytest.mark.parametrize(
    ("connection", "words"),
    [
        pytest.param("embedded://data/pg", "names a host", id="a host"),
        pytest.param("embedded:///a\0b", "NUL", id="a NUL"),
        pytest.param("postgres:///x", "not an embedded", id="another scheme"),
    ],
)
def test_what_cannot_be_a_folder_is_rejected(connection: str, words: str) -> None:
    with pytest.raises(EmbeddedError, match=words):
        folder_of(connection)


def test_the_conninfo_leads_to_the_socket_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGHOSTADDR", "192.0.2.1")
    folder = "/no/such place/50% 'quoted' é"

    with pytest.raises(psycopg.OperationalError, match=r"50% 'quoted' é/\.s\.PGSQL\.5432"):
        psycopg.connect(conninfo_for(Path(folder)))
