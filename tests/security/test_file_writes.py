"""gw makes files in one way: new, private and never through a link. This finds every other way."""

from __future__ import annotations

import ast
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.project_files import project_files

from gw_core.runtime import files

ROOT = Path(__file__).parents[2]
HELPER = "gw_core/runtime/files.py"

READING_MODE = re.compile(r"r?b?t?|rb|br|rt")
WRITERS = {"write_text", "write_bytes", "touch", "mkstemp", "mkdtemp", "mknod", "mkfifo"}
WRITERS |= {"NamedTemporaryFile", "TemporaryFile", "FileHandler", "copy", "copy2", "copyfile", "copytree", "move"}
OF_MODULES = {"copy": ("shutil",), "copy2": ("shutil",), "move": ("shutil",)}
"""Names that other objects have too count only as functions of these modules."""

OTHER_WAYS = {
    "gw_core/embedded/preparation.py _write": "runs without gw's modules, as another account; same flags",
    "gw_core/embedded/watchdog.py write_files": "runs without gw's modules; same flags",
    "gw_core/embedded/data_folder.py open": "opens locks and the log, never a link; creates nothing",
    "gw_core/embedded/binaries.py _copy_installation": "copies PostgreSQL into a new folder that other accounts read",
    "gw_core/embedded/binaries.py _copy_tree": "the same copy; links stay links",
}
"""File and function, with the reason."""


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Yield each call in the packages, with its file and the function around it."""
    for package in ("gw_core", "gw_cli", "gw_tui"):
        for path in project_files(ROOT / package, "*.py"):
            file = str(path.relative_to(ROOT))
            yield from ((file, function, call) for function, call in _calls_in(ast.parse(path.read_text("utf-8")), ""))


def _calls_in(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(child, ast.Call):
            yield function, child
        yield from _calls_in(child, child.name if is_function else function)


def writes(call: ast.Call) -> bool:
    """Return whether a call opens or makes a file to write to, judged by its text."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in {*WRITERS, "open", "GzipFile"}:
        return False
    module = ast.unparse(call.func).rpartition(".")[0]
    if name in WRITERS:
        return name not in OF_MODULES or module in OF_MODULES[name]
    if "devnull" in ast.unparse(call):
        return False
    if module == "os":
        return not re.search(r"O_RDONLY", ast.unparse(call))
    if any(keyword.arg in ("opener", "fileobj") for keyword in call.keywords):
        return any(keyword.arg == "opener" for keyword in call.keywords)
    return not _reads(call, is_function=module in ("", "io", "gzip"))


def _reads(call: ast.Call, *, is_function: bool) -> bool:
    """Return whether the mode of `open` only reads; the method of a path has no name in front of the mode."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    mode = [*given, *call.args[1 if is_function else 0 :]][:1]
    if not mode:
        return True
    if not isinstance(mode[0], ast.Constant) or not isinstance(mode[0].value, str):
        return not is_function  # an `open` of another kind of object
    is_mode = re.fullmatch("[rwxabtU+]+", mode[0].value) is not None
    return not is_mode or READING_MODE.fullmatch(mode[0].value) is not None


def test_files_are_made_by_one_helper() -> None:
    found = {f"{file} {function}" for file, function, call in calls() if file != HELPER and writes(call)}

    assert found - set(OTHER_WAYS) == set()
    assert set(OTHER_WAYS) - found == set(), "these exceptions are not needed"


@pytest.mark.parametrize(
    "text",
    [
        "open(path, 'w')",
        "open(path, mode)",
        "open(path, mode='ab')",
        "io.open(path, 'r+')",
        "open(path, opener=mine)",
        "path.open('x', encoding='utf-8')",
        "path.open(mode='w')",
        "path.write_text(text)",
        "os.open(path, os.O_WRONLY | os.O_CREAT)",
        "os.open(path, flags)",
        "gzip.open(path, 'wb')",
        "gzip.GzipFile(path, 'wb')",
        "shutil.copy(a, b)",
        "tempfile.mkstemp()",
    ],
)
def test_the_search_finds_this(text: str) -> None:
    (call,) = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    assert writes(call)


# -- the helper ---------------------------------------------------------------------------------------------------

MAKERS: dict[str, Callable[[Path], object]] = {
    "new_file": lambda path: files.new_file(path).close(),
    "write_new": lambda path: files.write_new(path, "new"),
    "append_to": lambda path: files.append_to(path).close(),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("exists", [True, False], ids=["to a file", "to nothing"])
def test_a_link_is_not_followed(make: Callable[[Path], object], exists: bool, tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    if exists:
        target.write_text("kept")
    link.symlink_to(target)

    with pytest.raises(OSError, match="link"):
        make(link)
    assert target.exists() is exists
    assert not exists or target.read_text() == "kept"


@pytest.mark.parametrize("make", [*MAKERS.values(), lambda path: files.replace_file(path, "new")])
def test_a_file_is_private(make: Callable[[Path], object], tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make(tmp_path / "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


def test_a_new_file_is_never_an_old_one(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("kept")

    with pytest.raises(FileExistsError):
        files.write_new(tmp_path / "old", "new")
    assert (tmp_path / "old").read_text() == "kept"


def test_a_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "target")

    files.replace_file(tmp_path / "link", "new")

    assert (tmp_path / "target").read_text() == "kept"
    assert ((tmp_path / "link").read_text(), (tmp_path / "link").is_symlink()) == ("new", False)


def test_nothing_is_left_of_a_file_that_cannot_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(OSError, match="folder"):
        files.replace_file(tmp_path / "folder", "new")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]
