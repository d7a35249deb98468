"""Where the value of a setting comes from, and what each may be."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from gw_cli.settings import config_file, resolve as r, table as c
from gw_core import WorkerSettings
from gw_core.errors import InvalidSettingError

HERE = Path("/project/below")
FILE = Path("/project/gw.toml")


def sources(
    *,
    flags: dict[str, object] | None = None,
    environment: dict[str, str] | None = None,
    file: dict[str, object] | None = None,
) -> r.Sources:
    stored = None if file is None else config_file.ConfigFile(FILE, file)
    return r.Sources(flags=flags or {}, environment=environment or {}, file=stored, folder=HERE)


def resolved(setting: c.Setting[object], **given: dict[str, object]) -> tuple[object, str]:
    configuration = r.resolve(sources(**given))  # type: ignore[arg-type]
    return configuration[setting], str(configuration.origin(setting))


@pytest.mark.parametrize("separator", [",", ", ", ";", "\n"])
def test_shards_in_the_environment_are_separated_like_other_lists(separator: str) -> None:
    first, second = "postgres://a,b:5433/app", "host=c,d dbname=app"
    given = separator.join((f"eu={first}", f"us={second}"))

    assert resolved(c.SHARDS, environment={"GW_SHARDS": given}) == ({"eu": first, "us": second}, "GW_SHARDS")


def test_a_configured_shard_is_chosen_by_its_name() -> None:
    configured = {"shards": ["eu=postgres://eu/app", "us=postgres://us/app"]}

    chosen = resolved(c.SHARDS, flags={"shards": ["us", "new=postgres://new/app"]}, file=configured)

    assert chosen == ({"us": "postgres://us/app", "new": "postgres://new/app"}, "--shard")


# -- which value counts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "value", "origin"),
    [
        pytest.param({}, 10, "default", id="nothing is given"),
        pytest.param({"file": {"concurrency": 2}}, 2, str(FILE), id="a file beats the default"),
        pytest.param(
            {"environment": {"GW_CONCURRENCY": "3"}, "file": {"concurrency": 2}},
            3,
            "GW_CONCURRENCY",
            id="a variable beats a file",
        ),
        pytest.param(
            {"flags": {"concurrency": "4"}, "environment": {"GW_CONCURRENCY": "3"}, "file": {"concurrency": 2}},
            4,
            "--concurrency",
            id="a flag beats a variable",
        ),
        pytest.param(
            {"flags": {"concurrency": None}, "file": {"concurrency": 2}},
            2,
            str(FILE),
            id="a flag left out says nothing",
        ),
        pytest.param(
            {"environment": {"GW_CONCURRENCY": ""}, "file": {"concurrency": 2}},
            2,
            str(FILE),
            id="an empty variable says nothing",
        ),
    ],
)
def test_the_strongest_place_decides(given: dict[str, dict[str, object]], value: int, origin: str) -> None:
    assert resolved(c.CONCURRENCY, **given) == (value, origin)


@pytest.mark.parametrize(
    ("given", "value", "origin"),
    [
        pytest.param({"file": {"strict": True}, "flags": {"strict": False}}, False, "--strict", id="a negative flag"),
        pytest.param(
            {"file": {"prepared-statements": False}, "flags": {"prepared-statements": None}},
            False,
            str(FILE),
            id="no flag leaves the file's false alone",
        ),
    ],
)
def test_a_switch_can_be_turned_off_and_stays_off(
    given: dict[str, dict[str, object]], value: bool, origin: str
) -> None:
    setting = c.STRICT if "strict" in given["file"] else c.PREPARED_STATEMENTS
    assert resolved(setting, **given) == (value, origin)


@pytest.mark.parametrize(
    ("environment", "value", "origin"),
    [
        pytest.param({"DATABASE_URL": "postgres://a"}, "postgres://a", "DATABASE_URL", id="the usual variable"),
        pytest.param(
            {"DATABASE_URL": "postgres://a", "GW_CONNECTION": "postgres://b"},
            "postgres://b",
            "GW_CONNECTION",
            id="our own variable comes first",
        ),
        pytest.param({"PGDATABASE": "db"}, "", "PGDATABASE", id="libpq's variables are left to libpq"),
        pytest.param(
            {"PGDATABASE": "d", "DATABASE_URL": "postgres://a"}, "postgres://a", "DATABASE_URL", id="url first"
        ),
        pytest.param({"PGHOST": "h", "PGPORT": "1"}, "postgres://f", str(FILE), id="a host names no database"),
        pytest.param({"PGPASSWORD": "x", "PGUSER": "me"}, "postgres://f", str(FILE), id="a password names no database"),
    ],
)
def test_a_connection_comes_from_where_one_is_named(environment: dict[str, str], value: str, origin: str) -> None:
    file: dict[str, object] = {"connection": "postgres://f"}
    configuration = r.resolve(sources(environment=environment, file=file))

    assert (configuration[c.CONNECTION], str(configuration.origin(c.CONNECTION))) == (value, origin)


def test_without_any_connection_there_is_none() -> None:
    assert resolved(c.CONNECTION) == (None, "default")


def test_the_schema_is_read_from_the_variable_of_graphile_worker() -> None:
    assert resolved(c.SCHEMA, environment={"GRAPHILE_WORKER_SCHEMA": "q"}) == ("q", "GRAPHILE_WORKER_SCHEMA")


def test_the_defaults_are_those_of_the_core() -> None:
    configuration, core = r.resolve(sources()), WorkerSettings()

    assert configuration[c.CONCURRENCY] == core.concurrency
    assert configuration[c.POLL_INTERVAL] == core.poll_interval
    assert configuration[c.GRACE_PERIOD] == core.grace_period


def test_every_name_becomes_one_flag_and_one_variable() -> None:
    assert c.POLL_INTERVAL.flag == "--poll-interval"
    assert c.POLL_INTERVAL.variables == ("GW_POLL_INTERVAL",)
    assert len(c.BY_NAME) == len(c.SETTINGS)


# -- what a value may be -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "raw", "value"),
    [
        pytest.param(c.POLL_INTERVAL, "500", timedelta(milliseconds=500), id="a bare poll interval is milliseconds"),
        pytest.param(c.POLL_INTERVAL, 500, timedelta(milliseconds=500), id="also as a number in a file"),
        pytest.param(c.POLL_INTERVAL, "1m30s", timedelta(seconds=90), id="a span"),
        pytest.param(c.GRACE_PERIOD, "0s", timedelta(0), id="no grace"),
        pytest.param(c.WATCH, "YES", True, id="yes"),
        pytest.param(c.WATCH, "off", False, id="off"),
        pytest.param(c.FORBIDDEN_FLAG, "a, b", ("a", "b"), id="names with a comma between"),
        pytest.param(c.FORBIDDEN_FLAG, ["a", "b"], ("a", "b"), id="names in a list"),
        pytest.param(c.TASKS, "~/tasks", Path.home() / "tasks", id="a path from home"),
        pytest.param(c.CONCURRENCY, 7, 7, id="a number in a file"),
    ],
)
def test_a_value_is_read(setting: c.Setting[object], raw: object, value: object) -> None:
    assert r.resolve(sources(file={setting.name: raw}))[setting] == value


@pytest.mark.parametrize(
    ("setting", "raw", "remedy"),
    [
        pytest.param(c.CONCURRENCY, "abc", "a whole number from 1 to 10000", id="not a number"),
        pytest.param(c.CONCURRENCY, "0", "a whole number from 1 to 10000", id="no jobs"),
        pytest.param(c.CONCURRENCY, "9" * 5000, "a whole number from 1 to 10000", id="more digits than Python reads"),
        pytest.param(c.CONCURRENCY, "1.5", "a whole number", id="a fraction"),
        pytest.param(c.CONCURRENCY, "٣", "a whole number", id="digits of another script"),
        pytest.param(c.CONCURRENCY, True, "a whole number", id="true is no number"),
        pytest.param(c.POLL_INTERVAL, "0", "at least 1ms", id="no interval"),
        pytest.param(c.POLL_INTERVAL, "soon", "a duration like 90s", id="not a span"),
        pytest.param(c.GRACE_PERIOD, "25", "a duration like 90s", id="a span without its unit"),
        pytest.param(c.GRACE_PERIOD, 25, "a duration like 90s", id="a number where a duration is due"),
        pytest.param(c.STRICT, "maybe", "true or false", id="neither on nor off"),
        pytest.param(c.STRICT, 1, "true or false", id="a number is no switch"),
        pytest.param(c.LOG_LEVEL, "loud", "one of debug, info, warning, error", id="not a level"),
        pytest.param(c.LOG_FORMAT, "xml", "one of text, json", id="not a format"),
        pytest.param(c.SCHEMA, "", "not empty", id="an empty schema"),
        pytest.param(c.FORBIDDEN_FLAG, "a,,b", "none of them empty", id="an empty name"),
        pytest.param(c.FORBIDDEN_FLAG, [1], "none of them empty", id="a number is no name"),
    ],
)
def test_a_value_that_does_not_fit_is_rejected_with_its_place_and_remedy(
    setting: c.Setting[object], raw: object, remedy: str
) -> None:
    with pytest.raises(InvalidSettingError) as rejected:
        r.resolve(sources(file={setting.name: raw}))

    assert str(rejected.value).startswith(f"{FILE}: {setting.name}")
    assert remedy in str(rejected.value)


def test_a_rejected_flag_is_named_by_its_flag_and_shown_harmless() -> None:
    with pytest.raises(InvalidSettingError, match=r"^--concurrency 'a\\x1b\[2J': give a whole number"):
        r.resolve(sources(flags={"concurrency": "a\x1b[2J"}))


def test_a_connection_that_cannot_be_read_is_not_shown() -> None:
    with pytest.raises(InvalidSettingError) as rejected:
        r.resolve(sources(file={"connection": {"url": "postgres://me:hidden@db"}}))

    assert "hidden" not in str(rejected.value)


# -- the file ----------------------------------------------------------------------------------------------------------


def test_a_relative_path_in_a_file_counts_from_the_files_folder() -> None:
    assert resolved(c.TASKS, file={"tasks": "work"})[0] == Path("/project/work")
    assert resolved(c.TASKS, flags={"tasks": "work"})[0] == Path("work")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        pytest.param("embedded:", "embedded:/project/.gw/postgres", id="the default folder"),
        pytest.param("embedded:data", "embedded:/project/data", id="a relative folder"),
        pytest.param("embedded:///srv/pg", "embedded:/srv/pg", id="an absolute folder"),
        pytest.param("embedded://host", "embedded://host", id="a host is left for the core to refuse"),
        pytest.param("postgres://db", "postgres://db", id="another server"),
    ],
)
def test_embedded_data_stays_beside_the_file(written: str, meant: str) -> None:
    assert resolved(c.CONNECTION, file={"connection": written})[0] == meant


def test_a_file_in_the_current_folder_is_taken_as_it_is_written() -> None:
    here = r.Sources(
        file=config_file.ConfigFile(HERE / "gw.toml", {"connection": "embedded:", "tasks": "work"}), folder=HERE
    )

    assert r.resolve(here)[c.CONNECTION] == "embedded:"
    assert r.resolve(here)[c.TASKS] == Path("work")


def test_a_key_may_be_written_with_underscores() -> None:
    assert resolved(c.POLL_INTERVAL, file={"poll_interval": "9s"})[0] == timedelta(seconds=9)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"poll_intervall": "1s"}, "'poll_intervall' is unknown; did you mean poll-interval?", id="close"),
        pytest.param({"zzz": 1}, "'zzz' is unknown; valid keys are connection, shards, schema,", id="close to nothing"),
        pytest.param({"log-level": "info", "log_level": "info"}, "'log-level' appears twice", id="twice"),
    ],
)
def test_an_unknown_key_is_rejected_with_file_and_key(values: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidSettingError) as rejected:
        r.resolve(sources(file=values))

    assert str(FILE) in str(rejected.value)
    assert message in str(rejected.value)


def test_misspelt_variables_are_found() -> None:
    environment = {"GW_CONCURENCY": "3", "GW_CONCURRENCY": "3", "GW_CONFIG": "x", "GW_DEBUG": "1", "PATH": "/bin"}

    assert r.unknown_variables(environment) == ["GW_CONCURENCY"]


@pytest.mark.parametrize("setting", c.SETTINGS, ids=lambda setting: setting.name)
def test_a_default_written_down_reads_as_itself(setting: c.Setting[object]) -> None:
    written = setting.kind.write(setting.default)

    assert not written or setting.kind.read(written) == setting.default
