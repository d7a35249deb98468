"""The text of errors and notes on stderr."""

from __future__ import annotations

import pytest
from support.log_recorder import LogRecorder

from gw_cli import stderr


def test_an_error_is_one_harmless_line(capsys: pytest.CaptureFixture[str]) -> None:
    stderr.error("bad \x1b[31mtask")

    assert capsys.readouterr() == ("", "gw: bad \\x1b[31mtask\n")


def test_later_lines_of_an_error_are_indented(capsys: pytest.CaptureFixture[str]) -> None:
    stderr.error("cannot import\nFile tasks/a.py\n")

    assert capsys.readouterr().err == "gw: cannot import\n    File tasks/a.py\n"


def test_errors_are_log_records_when_the_log_is_json(monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogRecorder()
    monkeypatch.setattr(stderr._ERRORS, "logger", log.logger)

    stderr.error("no such schema: 100%")

    assert log.of("error") == ["no such schema: 100%"]
