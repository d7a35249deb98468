"""Read tasks from a folder of files."""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import importlib.util
import itertools
import os
import re
import shlex
import stat
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gw_core.domain.errors import TaskLoadError
from gw_core.domain.job.outcome import error_message
from gw_core.domain.job.task_of_function import tasks_of
from gw_core.execution.executables import compose_executable
from gw_core.execution.functions import plain_function
from gw_core.execution.task import LoadedTask, Task, names_of_file
from gw_core.runtime.files import current_folder
from gw_core.tasks.registry import TaskRegistry, checked_identifier, composed_task, named_task

if TYPE_CHECKING:
    from gw_core.execution.process_protocol import TaskLocation

_FOLDER_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_FILE_NAME: Final = re.compile(r"([A-Za-z0-9_-]+)((?:\.[A-Za-z0-9_-]+)*)")
SHOWN_FRAMES: Final = 4

Stamps = Mapping[Path, tuple[int, ...]]
"""What distinguishes a changed file from an unchanged one."""


class TaskFileError(msgspec.Struct, frozen=True):
    """Why a file's tasks could not be loaded; `str()` is the whole message."""

    path: Path
    line: int | None
    reason: str
    excerpt: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return "\n".join((f"{place}: {self.reason}", *(f"  {frame}" for frame in self.excerpt)))


class TaskFile(msgspec.Struct, frozen=True):
    """What one file of the folder offers."""

    path: Path
    tasks: tuple[LoadedTask, ...] = ()
    errors: tuple[TaskFileError, ...] = ()


class Reading(msgspec.Struct, frozen=True):
    """One reading of a folder; `number` distinguishes it from earlier and later ones."""

    root: Path
    package: str
    executable_env: Sequence[str] | None = ()
    """The variables that executables get of our environment; None is all."""
    number: int = 0


class LoadedTasks(msgspec.Struct, frozen=True):
    """What was found in a task folder."""

    registry: TaskRegistry
    errors: tuple[TaskFileError, ...]
    """What could not be loaded; everything else was."""
    notices: tuple[str, ...]
    """A message for each file or folder that was skipped because it is not a task."""
    reading: Reading
    files: Mapping[Path, TaskFile]
    stamps: Stamps
    warnings: tuple[str, ...] = ()
    """A message for each file or folder that every user of the machine may change."""

    @property
    def root(self) -> Path:
        """The folder, or the single file."""
        return self.reading.root

    def reload(self) -> LoadedTasks:
        """Load the files that changed since; returns the object itself when none did.

        A file that can no longer be loaded keeps the tasks it had. When a file that is not a task changes, such as a
        helper module, every file is loaded again, for any of them may use it.
        """
        stamps = stamps_of(self.root)
        changed = {path for path in {*stamps, *self.stamps} if stamps.get(path) != self.stamps.get(path)}
        return self._reload(stamps, changed) if changed else self

    def _reload(self, stamps: Stamps, changed: set[Path]) -> LoadedTasks:
        # Finders remember a folder's listing by its time of change, which two quick changes may share.
        importlib.invalidate_caches()
        if _helpers_among(changed, self):
            _forget_modules_of(self.root)
            changed.update(self.files)
        return _load(self.reading, stamps, known=self.files, stale=changed)


# -- the folder ----------------------------------------------------------------------------------------------------


def load_folder(path: Path, *, strict: bool = False, executable_env: Sequence[str] | None = ()) -> LoadedTasks:
    """Load every task of a folder; a file that cannot be loaded becomes an error and the others still load.

    `path` may also be a single file. `executable_env` names the variables that executables get beside the usual ones;
    None is the whole environment. Raises `TaskLoadError` when there is no such folder, and with `strict` when there
    is any error.
    """
    root = _existing(path)
    loaded = _load(Reading(root, _new_package(root), executable_env), stamps_of(root))
    if strict and loaded.errors:
        raise TaskLoadError("\n".join(["not every task could be loaded:", *map(str, loaded.errors)]))
    return loaded


def _helpers_among(changed: Collection[Path], before: LoadedTasks) -> bool:
    """True when other files may have imported one of these."""
    ours = f"{before.reading.package}."
    imported = {
        getattr(each, "__file__", None) for name, each in list(sys.modules.items()) if not name.startswith(ours)
    }
    return any(
        str(path) in imported or _has_private_part(path, before.root) for path in changed if path.suffix == ".py"
    )


def _has_private_part(path: Path, root: Path) -> bool:
    return any(step.startswith("_") for step in path.relative_to(root).parts)


def stamps_of(root: Path) -> Stamps:
    """Return a stamp for every file below the folder."""
    paths = [root] if root.is_file() else _below(root)
    return {path: (info.st_mtime_ns, info.st_size, info.st_mode, info.st_ino) for path, info in _with_status(paths)}


def _below(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        yield from (Path(folder, name) for name in names)


def _with_status(paths: Sequence[Path] | Iterator[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    for path in paths:
        try:
            yield path, path.stat()
        except OSError:  # gone in between, or a link to nowhere
            continue


def _existing(path: Path) -> Path:
    root = Path(os.path.abspath(path))
    if root.is_dir() or root.is_file():
        return root
    what = "is neither a folder nor a file" if root.exists() else "does not exist"
    raise TaskLoadError(
        f"the task folder {root} {what}; create it, name another one with --tasks, "
        "or load tasks from a module with --app package.module:registry"
    )


def _load(
    reading: Reading, stamps: Stamps, *, known: Mapping[Path, TaskFile] | None = None, stale: Collection[Path] = ()
) -> LoadedTasks:
    known = known or {}
    reading = msgspec.structs.replace(reading, number=next(_READINGS))
    _make_importable(reading.root)
    search = _Search()
    search.scan(reading.root)
    files = {
        path: known[path] if path in known and path not in stale else _read(path, identifier, reading, known)
        for path, identifier in sorted(search.found.items(), key=lambda each: (each[1], each[0]))
    }
    registry, clashes = _registered(files.values())
    errors = (*search.errors, *(error for file in files.values() for error in file.errors), *clashes)
    return LoadedTasks(registry, errors, tuple(search.notices), reading, files, stamps, warnings=tuple(search.warnings))


def _registered(files: Collection[TaskFile]) -> tuple[TaskRegistry, list[TaskFileError]]:
    registry, clashes = TaskRegistry(), []
    for file in files:
        for each in file.tasks:
            try:
                registry.add(each)
            except TaskLoadError as error:
                clashes.append(TaskFileError(file.path, None, str(error)))
    return registry, clashes


def _make_importable(root: Path) -> None:
    """Let task files import helper modules that stand beside them, and the project's own packages."""
    for folder in (root if root.is_dir() else root.parent, current_folder()):
        if folder is not None and str(folder) not in sys.path:
            # At the end: a task file called email.py or queue.py must not hide the module that others mean.
            sys.path.append(str(folder))


# -- which files are tasks -----------------------------------------------------------------------------------------


class _Search:
    """Goes through the folder and sorts what it finds."""

    def __init__(self) -> None:
        self.found: dict[Path, str] = {}
        self.notices: list[str] = []
        self.warnings: list[str] = []
        self.errors: list[TaskFileError] = []

    def scan(self, root: Path) -> None:
        """Find every task file below the folder; `found` has its identifier."""
        if root.is_file():
            self._file(root, ())
        else:
            self._folder(root, ())

    def _folder(self, folder: Path, above: tuple[str, ...]) -> None:
        try:
            paths = sorted(folder.iterdir())
        except OSError as error:
            self.errors.append(TaskFileError(folder, None, f"the folder cannot be read: {error.strerror}"))
            return
        self._check_rights(folder)
        for path in paths:
            if not _is_private(path):
                self._entry(path, above)

    def _entry(self, path: Path, above: tuple[str, ...]) -> None:
        if path.is_dir():
            if path.is_symlink():
                self._ignore(path, "links to folders are not followed")
            elif _FOLDER_NAME.fullmatch(path.name):
                self._folder(path, (*above, path.name))
            else:
                self._ignore(path, "a folder's name may hold letters, digits, - and _ only")
        elif path.is_file():
            self._file(path, above)
        else:
            self._ignore(path, "it is not a regular file")

    def _file(self, path: Path, above: tuple[str, ...]) -> None:
        name = _FILE_NAME.fullmatch(path.name)
        if name is None:
            self._ignore(path, "a file's name may hold letters, digits, - and _ and suffixes of these only")
        elif name[2] == ".py" or _is_executable(path):
            self.found[path] = "/".join((*above, name[1]))
            self._check_rights(path)
        elif reason := _why_not_executable(path):
            self.errors.append(TaskFileError(path, None, reason))
        else:
            self._ignore(path, "it is neither a .py file nor executable")

    def _check_rights(self, path: Path) -> None:
        if path.stat().st_mode & stat.S_IWOTH:
            self.warnings.append(
                f"Every user of this machine can write to {path}, and can make this worker run any code; "
                f"run: chmod o-w {_from_here(path)}"
            )

    def _ignore(self, path: Path, reason: str) -> None:
        self.notices.append(f"Ignoring {path}: {reason}")


def _is_private(path: Path) -> bool:
    return path.name.startswith(("_", "."))


def _is_executable(path: Path) -> bool:
    # The owner's bit as in Node.js workers, and this user's permission: root has it with any bit.
    return bool(path.stat().st_mode & stat.S_IXUSR) and os.access(path, os.X_OK)


def _why_not_executable(path: Path) -> str | None:
    """Return what keeps a file that looks like a program from being one; None when it does not look so."""
    if path.stat().st_mode & stat.S_IXUSR:
        return "it is executable for its owner but not for the user who runs this worker"
    return (
        f"it begins with #! but is not executable; run: chmod +x {_from_here(path)}" if _has_interpreter(path) else None
    )


def _from_here(path: Path) -> str:
    """Return the path for a command that is typed in the current folder."""
    here = current_folder()
    return shlex.quote(str(path.relative_to(here) if here is not None and path.is_relative_to(here) else path))


def _has_interpreter(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


# -- one file ------------------------------------------------------------------------------------------------------


_READINGS: Final = itertools.count(1)


def load_one(path: Path, root: Path, identifier: str) -> LoadedTask:
    """Load one task of one file in a folder, for a process that runs nothing else; raises `TaskLoadError`."""
    _make_importable(root)
    folder = root if root.is_dir() else root.parent
    steps = path.relative_to(folder).with_name(path.name.partition(".")[0]).parts
    file = _read(path, "/".join(steps), Reading(root, _package_of(root)), {})
    for each in file.tasks:
        if each.identifier == identifier:
            return each
    raise TaskLoadError(str(file.errors[0]) if file.errors else f"{path} no longer defines task {identifier!r}")


def _read(path: Path, identifier: str, reading: Reading, known: Mapping[Path, TaskFile]) -> TaskFile:
    """Return what the file offers; after an error, what it offered before."""
    root = reading.root
    try:
        found = list(_tasks_in(path, identifier, reading))
    except TaskLoadError as error:
        found = [TaskFileError(path, None, str(error))]
    except SystemExit as error:
        found = [task_file_error(path, root, error, f"it calls sys.exit({error.code!r}) when imported")]
    except Exception as error:  # noqa: BLE001 - whatever the module raises belongs to that file
        found = [task_file_error(path, root, error, error_message(error))]
    tasks = tuple(each for each in found if isinstance(each, LoadedTask))
    errors = tuple(each for each in found if isinstance(each, TaskFileError))
    return TaskFile(path, known[path].tasks if errors and path in known else tasks, errors)


def _tasks_in(path: Path, identifier: str, reading: Reading) -> Iterator[LoadedTask | TaskFileError]:
    if path.suffix != ".py" or _is_program(path):
        yield LoadedTask(checked_identifier(identifier), compose_executable(path, reading.executable_env), str(path))
        return
    module = _imported(path, reading.root, reading.package)
    for name, function in _offered(module, identifier, path):
        line = _line_of(function)
        try:
            task, home = named_task(name, function), partial(_home, path, name, reading)
            yield composed_task(name, function, task, f"{path}:{line}", home)
        except TaskLoadError as error:
            yield TaskFileError(path, line, f"this cannot be the task {name!r}: {error}")
        except NameError as error:
            reason = f"the annotation of its payload is not defined ({error}); import the type where it runs too"
            yield TaskFileError(path, line, f"this cannot be the task {name!r}: {reason}")


def _home(path: Path, identifier: str, reading: Reading) -> TaskLocation:
    from gw_core.execution.process_protocol import FileTask

    return FileTask(str(reading.root), str(path), identifier, reading.number)


def _line_of(function: Callable[..., object]) -> int:
    return int(getattr(getattr(plain_function(function), "__code__", None), "co_firstlineno", 1))


def _is_program(path: Path) -> bool:
    """True for a .py file that is to be run as a program: executable, with a #! line, and offering no function."""
    if not (_is_executable(path) and _has_interpreter(path)):
        return False
    try:
        body = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError):
        return False  # importing it reports the error
    names = names_of_file(path)
    return not any(
        isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and (each.name in names or each.decorator_list)
        for each in body
    )


def _offered(module: ModuleType, identifier: str, path: Path) -> list[tuple[str, Callable[..., object]]]:
    """Return the tasks of a module: all its marked functions, else the one named like the file, else `run`."""
    own_names = names_of_file(path)
    marked = {
        id(task): (task, each) for each in vars(module).values() for task in tasks_of(each) if _is_of(module, each)
    }
    if marked:
        return [
            (task._identifier or (identifier if each.__name__ in own_names else each.__name__), each)
            for task, each in marked.values()
        ]
    there = [vars(module)[name] for name in own_names if name in vars(module)]
    # A function of the file's own goes before an imported one: sleep.py may import sleep and define run.
    functions = sorted(filter(callable, there), key=lambda each: not _is_of(module, each))
    if functions:
        return [(identifier, functions[0])]
    if there:
        raise TaskLoadError(f"{own_names[0]} must be a function, not of type {type(there[0]).__name__}")
    raise TaskLoadError(
        f"it defines no task; define a function {own_names[0]} or run, decorate functions with @task, "
        "or begin the file's name with _ if it is a helper module"
    )


def _is_of(module: ModuleType, function: object) -> bool:
    # Other callable objects have the module of their class; nothing records where they were created.
    named = isinstance(function, FunctionType | BuiltinFunctionType | type | Task)
    return not named or getattr(function, "__module__", None) == module.__name__


# -- importing -----------------------------------------------------------------------------------------------------

_PACKAGES: Final = itertools.count(1)


class _Source(importlib.machinery.SourceFileLoader):
    """Compiles the file each time: cached bytecode is told apart by the second, and a reload may come sooner."""

    def path_stats(self, path: Any) -> Mapping[str, Any]:
        raise OSError("no bytecode is kept for task files")


def _new_package(root: Path) -> str:
    """Make a private package for the folder, so that its modules meet no others and may import each other."""
    name = f"_graphile_tasks_{next(_PACKAGES)}"
    _add_package(name, root if root.is_dir() else root.parent)
    return name


_package_of: Final = cache(_new_package)


def _add_package(name: str, folder: Path) -> None:
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package


def _imported(path: Path, root: Path, package: str) -> ModuleType:
    name = package
    folder = root if root.is_dir() else root.parent
    for step in path.relative_to(folder).parts[:-1]:
        name, folder = f"{name}.{step}", folder / step
        _add_package(name, folder)
    return _executed(f"{name}.{path.stem}", path)


def _executed(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path, loader=_Source(name, str(path)))
    if spec is None or spec.loader is None:
        raise TaskLoadError("it cannot be imported as a Python module")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        _put_back(name, before)
        raise
    return module


def _put_back(name: str, module: ModuleType | None) -> None:
    if module is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = module


def _forget_modules_of(root: Path) -> None:
    """Let the next import is_instance anything in the folder read its file again."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and Path(file).is_relative_to(root):
            del sys.modules[name]


# -- errors --------------------------------------------------------------------------------------------------------


def task_file_error(path: Path, root: Path, error: BaseException, reason: str) -> TaskFileError:
    """Return the error for an exception, with the frames that lie in the task folder."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        text = error.text if _is_inside(str(path), root) else None
        return TaskFileError(path, error.lineno, f"{type(error).__name__}: {error.msg}", _source_line(text))
    frames = [each for each in traceback.extract_tb(error.__traceback__) if Path(each.filename).is_relative_to(root)]
    lines = [each.lineno for each in frames if each.filename == str(path)]
    return TaskFileError(
        path,
        lines[-1] if lines else None,
        reason,
        tuple(shown_frame(each, with_source=_is_inside(each.filename, root)) for each in frames[-SHOWN_FRAMES:]),
    )


def _is_inside(file: str, root: Path) -> bool:
    """Whether a file lies in the folder, links followed; the text of any other file stays out of the log."""
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(root))


def shown_frame(frame: traceback.FrameSummary, *, with_source: bool = True) -> str:
    """Return the place of a frame and, with `with_source`, its source line."""
    return f"{frame.filename}:{frame.lineno}: {(frame.line or '') if with_source else ''}".rstrip(": ")


def _source_line(text: str | None) -> tuple[str, ...]:
    return (text.strip(),) if text and text.strip() else ()
