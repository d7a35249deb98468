"""What a task folder offers, and its errors for files that offer nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.task_builders import a_job, attempt, write, write_program

from gw_core.front_ends import Completed, Failed, LoadedTasks, TaskLoadError, load_folder


@pytest.fixture(autouse=True)
def import_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the modules and the path; let Python keep bytecode, whatever the environment sets."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    modules, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("_"):
            del sys.modules[name]


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks"
    folder.mkdir()
    return folder


def result_of(loaded: LoadedTasks, identifier: str) -> Any:
    """The answer of the task: our test tasks raise it."""
    task, job = loaded.registry.get(identifier), a_job()
    assert task is not None
    outcome = attempt(task, job)
    assert isinstance(outcome, Failed)
    return str(outcome.error)


ANSWER = "def {name}(payload):\n    raise ValueError({answer!r})\n"


RUN = ANSWER.format(name="run", answer="run")


def answering(path: Path, answer: str, name: str = "run") -> Path:
    return write(path, ANSWER.format(name=name, answer=answer))


def only_error(loaded: LoadedTasks) -> str:
    (error,) = loaded.errors
    return str(error)


# -- what is a task ---------------------------------------------------------------------------------------------------


def test_identifiers_are_paths_without_suffix(tasks: Path) -> None:
    answering(tasks / "hello.py", "hi")
    answering(tasks / "reports" / "weekly.py", "weekly")
    answering(tasks / "reports" / "by-country" / "all_of_them.py", "all")
    write_program(tasks / "reports" / "daily.sh", "#!/bin/sh\n")
    write_program(tasks / "plain", "#!/bin/sh\n")

    loaded = load_folder(tasks)

    assert loaded.registry.identifiers == (
        "hello",
        "plain",
        "reports/by-country/all_of_them",
        "reports/daily",
        "reports/weekly",
    )
    assert (loaded.errors, loaded.notices) == ((), ())
    assert result_of(loaded, "reports/weekly") == "weekly"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(ANSWER.format(name="send_mail", answer="own"), "own", id="named like the file"),
        pytest.param(RUN, "run", id="run"),
        pytest.param(RUN + ANSWER.format(name="send_mail", answer="own"), "own", id="both"),
        pytest.param("from time import sleep as send_mail\n" + RUN, "run", id="imported function"),
        pytest.param("from os.path import join as send_mail\n" + RUN, "run", id="imported Python function"),
        pytest.param("async " + ANSWER.format(name="run", answer="async"), "async", id="async"),
        pytest.param("import json as send_mail\n" + RUN, "run", id="imported module"),
    ],
)
def test_a_file_offers_the_function_named_like_it_or_run(tasks: Path, source: str, expected: str) -> None:
    write(tasks / "send-mail.py", source)

    assert result_of(load_folder(tasks), "send-mail") == expected


def test_a_file_may_offer_any_number_of_marked_functions(tasks: Path) -> None:
    write(
        tasks / "mail" / "all.py",
        """
from gw_core.tasks.registry import cron, task

@cron("0 8 * * *", fill="1d")
@task("mail/send")
def first(payload): raise ValueError("first")

@task
def second(payload): raise ValueError("second")

@task()
def run(payload): raise ValueError("the file's own")

again = first
def helper(payload): ...
""",
    )

    loaded = load_folder(tasks)

    assert loaded.registry.identifiers == ("mail/all", "mail/send", "second")
    assert [result_of(loaded, each) for each in loaded.registry.identifiers] == ["the file's own", "first", "second"]
    assert loaded.registry.crontab_sources == (("mail/send", "0 8 * * *", {"fill": "1d"}),)


def test_marked_functions_of_another_module_are_not_this_files(tasks: Path) -> None:
    write(tasks / "one.py", "from gw_core.tasks.registry import task\n@task\ndef first(payload): ...\n")
    write(tasks / "two.py", "from one import first\n" + ANSWER.format(name="run", answer="two"))

    loaded = load_folder(tasks)

    assert loaded.errors == ()
    assert loaded.registry.identifiers == ("first", "two")


def test_a_schedule_may_stand_on_a_function_without_a_mark(tasks: Path) -> None:
    write(tasks / "daily.py", "from gw_core.tasks.registry import cron\n@cron('0 4 * * *')\ndef run(payload): ...\n")

    assert load_folder(tasks).registry.crontab_sources == (("daily", "0 4 * * *", {}),)


def test_dataclasses_of_a_task_file_work_with_postponed_annotations(tasks: Path) -> None:
    write(
        tasks / "mail.py",
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "def run(payload: Mail): raise ValueError(repr(payload.to))\n"
        "@dataclass\nclass Mail:\n    to: str = 'home'\n",
    )

    assert result_of(load_folder(tasks), "mail") == "'home'"


def test_the_source_of_a_task_is_its_file_and_line(tasks: Path) -> None:
    path = write(tasks / "mail.py", "\n\ndef run(payload): ...\n")
    program = write_program(tasks / "program", "#!/bin/sh\n")

    assert [each.source for each in load_folder(tasks).registry] == [f"{path}:3", str(program)]


def test_a_single_file_may_stand_for_the_folder(tasks: Path) -> None:
    answering(tasks / "other.py", "other")

    loaded = load_folder(answering(tasks / "hello.py", "hi"))

    assert loaded.registry.identifiers == ("hello",)
    assert result_of(loaded, "hello") == "hi"


def test_an_empty_folder_has_no_tasks(tasks: Path) -> None:
    assert load_folder(tasks, strict=True).registry.identifiers == ()


# -- helper modules ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", ["from _helpers import answer", "from ._helpers import answer"])
def test_a_helper_module_beside_the_task_can_be_imported(tasks: Path, statement: str) -> None:
    write(tasks / "_helpers.py", "answer = 'helped'\n")
    write(tasks / "mail.py", f"{statement}\ndef run(payload): raise ValueError(answer)\n")
    sys.modules.pop("_helpers", None)

    assert result_of(load_folder(tasks), "mail") == "helped"


def test_relative_imports_work_in_nested_folders(tasks: Path) -> None:
    write(tasks / "a" / "_near.py", "near = 'near'\n")
    write(tasks / "_far.py", "far = 'far'\n")
    write(
        tasks / "a" / "mail.py",
        "from ._near import near\nfrom .._far import far\ndef run(payload): raise ValueError(near + far)\n",
    )

    assert result_of(load_folder(tasks), "a/mail") == "nearfar"


def test_task_files_hide_no_modules_of_others(tasks: Path) -> None:
    answering(tasks / "json.py", "the task")
    answering(tasks / "smtpd_nobody_has.py", "the task")

    loaded = load_folder(tasks)

    import json

    assert hasattr(json, "loads")
    assert "smtpd_nobody_has" not in sys.modules
    assert sys.path.index(str(tasks)) == len(sys.path) - 1
    assert result_of(loaded, "json") == "the task"


def test_two_folders_with_files_of_the_same_name_do_not_meet(tmp_path: Path) -> None:
    for name in ("one", "two"):
        answering(tmp_path / name / "mail.py", name)

    one, two = load_folder(tmp_path / "one"), load_folder(tmp_path / "two")

    assert (result_of(one, "mail"), result_of(two, "mail")) == ("one", "two")


def test_no_bytecode_is_written_for_task_files(tasks: Path) -> None:
    answering(tasks / "mail.py", "hi")

    load_folder(tasks)

    assert [each.name for each in tasks.iterdir()] == ["mail.py"]


# -- what is left out -------------------------------------------------------------------------------------------------


def test_private_files_and_folders_are_skipped_without_a_message(tasks: Path) -> None:
    for name in ("__init__.py", "_private.py", ".hidden.py", "_lib/mail.py", ".git/mail.py", "__pycache__/x.py"):
        write(tasks / name, "raise RuntimeError('imported')\n")

    loaded = load_folder(tasks)

    assert (loaded.registry.identifiers, loaded.errors, loaded.notices) == ((), (), ())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("has space.py", "a file's name may hold"),
        ("naïve.py", "a file's name may hold"),
        ("mail.py~", "a file's name may hold"),
        ("a.b/mail.py", "a folder's name may hold"),
        ("readme.md", "neither a .py file nor executable"),
        ("mail.test.py", "neither a .py file nor executable"),
    ],
)
def test_what_is_no_task_is_ignored_with_a_notice(tasks: Path, name: str, reason: str) -> None:
    write(tasks / name, "raise RuntimeError('imported')\n")

    loaded = load_folder(tasks, strict=True)

    (notice,) = loaded.notices
    assert reason in notice
    assert loaded.registry.identifiers == ()


def test_links_to_files_are_followed_and_links_to_folders_are_not(tasks: Path, tmp_path: Path) -> None:
    outside = answering(tmp_path / "outside" / "mail.py", "linked")
    (tasks / "mail.py").symlink_to(outside)
    (tasks / "loop").symlink_to(tasks)
    (tasks / "nowhere.py").symlink_to(tmp_path / "nowhere")

    loaded = load_folder(tasks)

    assert result_of(loaded, "mail") == "linked"
    assert loaded.registry.identifiers == ("mail",)
    assert [notice.rpartition(": ")[2] for notice in loaded.notices] == [
        "links to folders are not followed",
        "it is not a regular file",
    ]


# -- programs ---------------------------------------------------------------------------------------------------------


def test_a_program_runs_with_the_job(tasks: Path) -> None:
    write_program(tasks / "mail.sh", "#!/bin/sh\ngrep -q payload && exit 0\n")
    loaded, job = load_folder(tasks), a_job()
    task = loaded.registry.get("mail")

    assert task is not None
    assert isinstance(attempt(task, job), Completed)


def test_a_script_that_is_not_executable_is_an_error_that_says_what_to_run(
    tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tasks / "mail.sh", "#!/bin/sh\n")
    hint = "it begins with #! but is not executable; run: chmod +x"

    assert only_error(load_folder(tasks)) == f"{path}: {hint} {path}"
    monkeypatch.chdir(tasks.parent)
    assert only_error(load_folder(tasks)) == f"{path}: {hint} {path.relative_to(tasks.parent)}"


def test_an_executable_python_file_with_functions_is_imported(tasks: Path) -> None:
    write_program(tasks / "mail.py", "#!/usr/bin/env python3\n" + ANSWER.format(name="run", answer="imported"))

    assert result_of(load_folder(tasks), "mail") == "imported"


def test_an_executable_python_file_that_offers_no_function_is_run_as_a_program(tasks: Path) -> None:
    write_program(tasks / "mail.py", "#!/usr/bin/env python3\nimport sys\nsys.exit('ran as a program')\n")

    assert "ran as a program" in result_of(load_folder(tasks), "mail")


# -- errors -----------------------------------------------------------------------------------------------------------


def with_a_good_neighbour(tasks: Path) -> Callable[[], LoadedTasks]:
    answering(tasks / "good.py", "good")

    def load() -> LoadedTasks:
        loaded = load_folder(tasks)
        assert result_of(loaded, "good") == "good", "the others still load"
        return loaded

    return load


def test_a_file_that_does_not_import_is_an_error_with_its_own_frames(tasks: Path) -> None:
    load = with_a_good_neighbour(tasks)
    path = write(tasks / "bad.py", "import json\n\ndef read():\n    return json.loads('nope')\n\nread()\n")

    error = only_error(load())

    assert error.splitlines() == [
        f"{path}:4: JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        f"  {path}:6: read()",
        f"  {path}:4: return json.loads('nope')",
    ]


def test_a_missing_module_is_an_error_at_the_line_that_imports_it(tasks: Path) -> None:
    load = with_a_good_neighbour(tasks)
    path = write(tasks / "bad.py", "\nimport nobody_has_this\n")

    assert only_error(load()).startswith(f"{path}:2: ModuleNotFoundError: No module named 'nobody_has_this'\n")


def test_a_syntax_error_is_an_error_at_its_line(tasks: Path) -> None:
    load = with_a_good_neighbour(tasks)
    path = write(tasks / "bad.py", "x = 1\ndef run(payload:\n")

    assert only_error(load()).splitlines() == [f"{path}:2: SyntaxError: '(' was never closed", "  def run(payload:"]


def test_an_error_in_a_helper_names_both_files(tasks: Path) -> None:
    load = with_a_good_neighbour(tasks)
    helper = write(tasks / "_broken_helper.py", "1 / 0\n")
    path = write(tasks / "bad.py", "import _broken_helper\n")

    assert only_error(load()).splitlines() == [
        f"{path}:1: ZeroDivisionError: division by zero",
        f"  {path}:1: import _broken_helper",
        f"  {helper}:1: 1 / 0",
    ]


def test_a_deep_traceback_is_cut(tasks: Path) -> None:
    write(tasks / "bad.py", "def deeper(n):\n    return deeper(n - 1) if n else 1 / 0\ndeeper(100)\n")

    assert len(only_error(load_folder(tasks)).splitlines()) == 5


def test_a_file_that_calls_sys_exit_is_an_error(tasks: Path) -> None:
    load = with_a_good_neighbour(tasks)
    path = write(tasks / "bad.py", "import sys\nsys.exit(3)\n")

    assert only_error(load()).startswith(f"{path}:2: it calls sys.exit(3) when imported")


def test_source_that_is_no_text_is_an_error(tasks: Path) -> None:
    load = with_a_good_neighbour(tasks)
    (tasks / "bad.py").write_bytes(b"\xff\xfe\x00x = 1\n")

    assert str(tasks / "bad.py") in only_error(load())


def test_a_file_that_offers_nothing_is_an_error_that_says_what_to_do(tasks: Path) -> None:
    load = with_a_good_neighbour(tasks)
    path = write(tasks / "bad-one.py", "def somethingelse(payload): ...\n")

    error = only_error(load())

    assert error.startswith(f"{path}: it defines no task; define a function bad_one or run, decorate")


def test_a_name_that_is_no_function_is_an_error(tasks: Path) -> None:
    load = with_a_good_neighbour(tasks)
    write(tasks / "bad.py", "bad = 'a text'\n")

    assert "bad must be a function, not of type str" in only_error(load())


def test_a_function_that_cannot_be_a_task_is_an_error_and_its_neighbours_in_the_file_load(tasks: Path) -> None:
    path = write(
        tasks / "mail.py",
        "from gw_core.tasks.registry import task\n"
        "@task\ndef good(payload): raise ValueError('good')\n"
        "@task\ndef bad(payload, context, more): ...\n"
        "@task\ndef lost(payload: 'Nowhere'): ...\n",
    )

    loaded = load_folder(tasks)

    assert result_of(loaded, "good") == "good"
    assert [str(error).partition(": ")[0] for error in loaded.errors] == [f"{path}:4", f"{path}:6"]
    assert "also needs more" in str(loaded.errors[0])
    assert "'Nowhere' is not defined" in str(loaded.errors[1])


def test_two_files_for_one_identifier_are_an_error_naming_both(tasks: Path) -> None:
    answering(tasks / "mail.py", "python")
    program = write_program(tasks / "mail.sh", "#!/bin/sh\n")

    loaded = load_folder(tasks)

    assert result_of(loaded, "mail") == "python"
    error = only_error(loaded)
    assert str(tasks / "mail.py") in error
    assert str(program) in error


def test_an_identifier_that_is_too_long_is_an_error(tasks: Path) -> None:
    answering(tasks / ("a" * 100) / ("b" * 100 + ".py"), "long")

    assert "201 characters" in only_error(load_folder(tasks))


def test_strict_rejects_everything_and_lists_every_error(tasks: Path) -> None:
    answering(tasks / "good.py", "good")
    write(tasks / "bad.py", "import nobody_has_this\n")
    write(tasks / "worse.py", "1 / 0\n")

    with pytest.raises(TaskLoadError, match=r"(?s)nobody_has_this.*division by zero"):
        load_folder(tasks, strict=True)


def test_a_folder_that_is_not_there_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TaskLoadError, match=r"nowhere does not exist; create it.*--tasks.*--app"):
        load_folder(tmp_path / "nowhere")


def test_what_is_neither_file_nor_folder_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(TaskLoadError, match="neither a folder nor a file"):
        load_folder(tmp_path / "pipe")


# -- reloading --------------------------------------------------------------------------------------------------------


def test_nothing_changed_means_nothing_is_loaded(tasks: Path) -> None:
    answering(tasks / "mail.py", "hi")
    loaded = load_folder(tasks)

    assert loaded.reload() is loaded


def test_a_changed_file_is_loaded_again_and_no_other(tasks: Path) -> None:
    count = tasks / "count.txt"
    write(tasks / "other.py", f"with open({str(count)!r}, 'a') as f: f.write('x')\ndef run(payload): ...\n")
    former = answering(tasks / "mail.py", "old").stat()
    loaded = load_folder(tasks)

    path = answering(tasks / "mail.py", "new")  # same length, same second
    os.utime(path, ns=(former.st_atime_ns, former.st_mtime_ns + 1))  # the kernel's clock may not have moved on
    loaded = loaded.reload()

    assert result_of(loaded, "mail") == "new"
    assert count.read_text() == "x"


def test_files_come_and_go(tasks: Path) -> None:
    path = answering(tasks / "one.py", "one")
    loaded = load_folder(tasks)

    path.unlink()
    answering(tasks / "two.py", "two")

    assert loaded.reload().registry.identifiers == ("two",)


def test_a_file_that_breaks_keeps_its_tasks_until_it_is_fixed(tasks: Path) -> None:
    path = answering(tasks / "mail.py", "old")
    before = load_folder(tasks)

    write(path, "def run(payload:\n")
    broken = before.reload()
    assert result_of(broken, "mail") == "old"
    assert "SyntaxError" in only_error(broken)

    answering(path, "fixed")
    fixed = broken.reload()
    assert result_of(fixed, "mail") == "fixed"
    assert fixed.errors == ()


@pytest.mark.parametrize("helper", ["_helper_a.py", "_lib_a/words.py"])
@pytest.mark.parametrize("how", ["absolute", "relative"])
def test_a_changed_helper_reloads_those_that_use_it(tasks: Path, helper: str, how: str) -> None:
    dotted = helper.removesuffix(".py").replace("/", ".")
    for name in [each for each in sys.modules if each.startswith(dotted.partition(".")[0])]:
        del sys.modules[name]
    write(tasks / helper, "answer = 'old'\n")
    dot = "." if how == "relative" else ""
    write(tasks / "mail.py", f"from {dot}{dotted} import answer\ndef run(payload): raise ValueError(answer)\n")
    loaded = load_folder(tasks)
    assert result_of(loaded, "mail") == "old"

    write(tasks / helper, "answer = 'newer'\n")

    assert result_of(loaded.reload(), "mail") == "newer"


def test_a_helper_that_appears_fixes_the_file_that_misses_it(tasks: Path) -> None:
    sys.modules.pop("_late_helper", None)
    write(tasks / "mail.py", "from _late_helper import answer\ndef run(payload): raise ValueError(answer)\n")
    loaded = load_folder(tasks)
    assert len(loaded.errors) == 1

    write(tasks / "_late_helper.py", "answer = 'here'\n")
    loaded = loaded.reload()

    assert result_of(loaded, "mail") == "here"
    assert loaded.errors == ()


def test_a_file_that_becomes_executable_becomes_a_task(tasks: Path) -> None:
    path = write(tasks / "mail.sh", "#!/bin/sh\n")
    loaded = load_folder(tasks)

    path.chmod(0o755)

    assert loaded.reload().registry.identifiers == ("mail",)


def test_a_folder_that_disappears_leaves_no_tasks_and_an_error(tasks: Path) -> None:
    answering(tasks / "mail.py", "hi")
    loaded = load_folder(tasks)

    (tasks / "mail.py").unlink()
    tasks.rmdir()
    gone = loaded.reload()

    assert gone.registry.identifiers == ()
    assert "cannot be read" in only_error(gone)
    tasks.mkdir()
    answering(tasks / "mail.py", "back")
    assert result_of(gone.reload(), "mail") == "back"


def test_a_task_may_import_the_packages_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_of_this_test").mkdir()
    (tmp_path / "shop_of_this_test" / "__init__.py").write_text("PRICE = 7\n")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "buy.py").write_text(
        "from shop_of_this_test import PRICE\n\ndef buy(payload):\n    return PRICE\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    loaded = load_folder(Path("tasks"))

    assert (loaded.registry.identifiers, loaded.errors) == (("buy",), ())


# -- a deployment that deletes the current folder ------------------------------------------------------------------


def test_tasks_are_loaded_after_the_current_folder_was_deleted(tasks: Path, deleted_folder: None) -> None:
    answering(tasks / "hello.py", "hi")
    (tasks / "plain").write_text("#!/bin/sh\n")

    loaded = load_folder(tasks)

    assert result_of(loaded, "hello") == "hi"
    assert f"run: chmod +x {tasks}/plain" in only_error(loaded)
