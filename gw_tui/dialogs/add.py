"""The form to add a job, whose payload can be written in the operator's own editor."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Label, TextArea

from gw_core import JobSpec
from gw_core.runtime.files import write_new
from gw_tui.actions import Add
from gw_tui.dialogs.base import MAX_NUMBER, Dialog
from gw_tui.text import sanitize


class AddDialog(Dialog[tuple[JobSpec, str]]):
    """Asks for a job; answers with its description and its payload as JSON text."""

    AUTO_FOCUS = "#task"
    has_preview = True
    BINDINGS: ClassVar[list[BindingType]] = [
        # Handled before the field, which would move its cursor to the end.
        Binding("ctrl+e", "edit", "Editor", show=False, priority=True)
    ]

    DEFAULT_CSS = """
    AddDialog .field Label { width: 14; }
    AddDialog #payload { height: 5; border: none; background: $background; }
    """

    _FIELDS = (
        ("task", "Task", "identifier"),
        ("queue_name", "Queue", "none"),
        ("run_at", "Run at", "now, +2h, 2026-03-01T09:00Z"),
        ("priority", "Priority", "0; lower runs first"),
        ("max_attempts", "Max attempts", "25"),
        ("job_key", "Key", "none"),
        ("job_key_mode", "Key mode", "replace, preserve_run_at or unsafe_dedupe"),
        ("flags", "Flags", "none; comma-separated"),
    )

    def __init__(self, task: str = "") -> None:
        super().__init__("Add a job", ok="Add")
        self._offered = task

    def fields(self) -> ComposeResult:
        for name, label, example in self._FIELDS:
            value = sanitize.line(self._offered, 128) if name == "task" else ""
            yield from self.row(name, label, example, value)
        yield Label(Content("Payload (JSON; ^e opens your editor)"), markup=False)
        yield TextArea("{}", id="payload", tab_behavior="focus", compact=True)

    def action_edit(self) -> None:
        """Let the payload be written in the operator's own editor."""
        area = self.query_one("#payload", TextArea)
        text, failure = area.text, ""
        try:
            with self.app.suspend():
                # The screen comes back at the end of this block, and only when nothing is raised through it.
                try:
                    text = edited(text)
                except (OSError, ValueError) as error:
                    failure = f"Payload unchanged: {error}"
        except SuspendNotSupported:
            failure = "Cannot open an editor here"
        if text != area.text:
            area.load_text(text)
        self.say(failure)

    def answer(self) -> tuple[JobSpec, str]:
        payload = check_payload(self.query_one("#payload", TextArea).text)
        given = {name: self.text_of(name) for name, _, _ in self._FIELDS}
        return self._spec({name: text for name, text in given.items() if text}), payload

    def pending_action(self) -> Add:
        spec, payload = self.answer()
        return Add(spec=spec, payload=payload)

    def _spec(self, given: dict[str, str]) -> JobSpec:
        if "task" not in given:
            raise ValueError("Enter a task")
        more: dict[str, object] = {
            name: given[name] for name in ("queue_name", "job_key", "job_key_mode") if name in given
        }
        if "flags" in given:
            more["flags"] = tuple(each.strip() for each in given["flags"].split(",") if each.strip())
        parsed = {
            "run_at": self.time_of("run_at"),
            "priority": self.number_of("priority", least=-MAX_NUMBER - 1),
            "max_attempts": self.number_of("max_attempts", least=1),
        }
        more |= {name: value for name, value in parsed.items() if value is not None}
        return JobSpec(task=given["task"], **more)  # type: ignore[arg-type] # each field has its kind


def check_payload(text: str) -> str:
    """Return a payload that is JSON; an empty one is `{}`. Raises `ValueError` with the position of an error."""
    trimmed = text.strip()
    if not trimmed:
        return "{}"
    try:
        json.loads(trimmed)
    except json.JSONDecodeError as error:
        raise ValueError(f"Payload is not valid JSON: {error.msg}, line {error.lineno} column {error.colno}.") from None
    except RecursionError:
        raise ValueError("Payload is nested too deeply") from None
    return trimmed


def edited(text: str) -> str:
    """Return the text as the operator's own editor left it.

    Raises `OSError` when there is none, and `ValueError` when it exited with an error, as editors do on request, or
    when the file is not text.
    """
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "") or ["vi"]
    with tempfile.TemporaryDirectory(prefix="gw-") as folder:
        path = Path(folder, "payload.json")
        write_new(path, text)
        code = subprocess.run([*command, str(path)], check=False).returncode  # noqa: S603 - the operator's own choice
        if code:
            raise ValueError(f"{Path(command[0]).name} ended with {code}")
        return path.read_text(encoding="utf-8").rstrip("\n")
