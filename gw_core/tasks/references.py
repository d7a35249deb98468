"""Load what `package.module:attribute` names: the registry of an application, or a plugin."""

from __future__ import annotations

import importlib
import sys
import traceback
from operator import attrgetter
from types import ModuleType
from typing import Any, Final, Generic, TypeVar

import msgspec

from gw_core.domain.errors import GraphileWorkerError, PluginLoadError, TaskLoadError
from gw_core.domain.job.outcome import error_message
from gw_core.domain.rules.plugins import Plugin
from gw_core.runtime.files import current_folder
from gw_core.tasks.loading import SHOWN_FRAMES, shown_frame
from gw_core.tasks.registry import TaskRegistry

T = TypeVar("T")


def load_app(spec: str, *, from_here: bool = True) -> TaskRegistry:
    """Load `package.module:attribute`: a `TaskRegistry`, or a function without arguments that returns one.

    The current folder comes first on the import path, unless `from_here` is false. `package.module.attribute` works
    too. Raises `TaskLoadError`.
    """
    registry = _REGISTRY.load(spec, from_here=from_here)
    registry.app = spec
    registry.complete()
    return registry


def load_plugin(spec: str) -> Plugin:
    """Load `package.module:attribute`: a `Plugin`, or its class or a function without arguments that returns one.

    Modules are found as by `load_app`. Raises `PluginLoadError`.
    """
    return _PLUGIN.load(spec)


class _Reference(msgspec.Struct, Generic[T], frozen=True):
    """What the attribute must be or return, what the reference is for, and the error when it cannot be loaded."""

    kind: type[T]
    purpose: str
    example: str
    error: type[GraphileWorkerError]

    def load(self, spec: str, *, from_here: bool = True) -> T:
        """Import the module and return its attribute, or what the attribute returns."""
        module_name, attribute = self._parse(spec)
        folder = current_folder()
        if from_here and folder is not None and sys.path[:1] not in ([""], [str(folder)]):
            sys.path.insert(0, str(folder))
        return self._made(spec, self._attribute(spec, self._module(spec, module_name), attribute))

    def _parse(self, spec: str) -> tuple[str, str]:
        module_name, _, attribute = spec.partition(":") if ":" in spec else spec.rpartition(".")
        parts = [*module_name.split("."), *attribute.split(".")]
        if not all(part.isidentifier() for part in parts):
            raise self.error(f"{spec!r} does not name {self.purpose}; write it as package.module:{self.example}")
        return module_name, attribute

    def _module(self, spec: str, name: str) -> ModuleType:
        try:
            return importlib.import_module(name)
        except SystemExit as error:
            raise self.error(
                f"cannot load {spec!r}: the module {name} calls sys.exit({error.code!r}) when imported"
            ) from error
        except Exception as error:
            raise self.error(f"cannot load {spec!r}: {_why_no_module(name, error)}{_frames(error)}") from error

    def _attribute(self, spec: str, module: ModuleType, attribute: str) -> Any:
        try:
            return attrgetter(attribute)(module)
        except AttributeError as error:
            found = sorted(name for name, value in vars(module).items() if isinstance(value, self.kind))
            hint = f"; it has {', '.join(found)}" if found else f"; it has no {self.kind.__name__} at all"
            raise self.error(f"cannot load {spec!r}: the module {module.__name__} has no {attribute}{hint}") from error

    def _made(self, spec: str, value: Any) -> T:
        wanted = self.kind.__name__
        if isinstance(value, self.kind):
            return value
        if not callable(value):
            raise self.error(
                f"cannot load {spec!r}: it is of type {type(value).__name__}; "
                f"name a {wanted} or a function without arguments that returns one"
            )
        try:
            value = value()
        except Exception as error:
            raise self.error(
                f"cannot load {spec!r}: calling it failed: {error_message(error)}{_frames(error)}"
            ) from error
        if isinstance(value, self.kind):
            return value
        raise self.error(f"cannot load {spec!r}: calling it returned {type(value).__name__}, not a {wanted}")


_REGISTRY: Final = _Reference(TaskRegistry, "an application", "registry", TaskLoadError)
_PLUGIN: Final = _Reference(Plugin, "a plugin", "plugin", PluginLoadError)


def _why_no_module(name: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
        here = current_folder() or "the current folder, which was deleted,"
        return f"there is no module {error.name} in {here} or among the installed packages"
    return f"importing {name} failed: {error_message(error)}"


def _frames(error: Exception) -> str:
    """Return the last frames of the import or the call, one line each, without ours and the import machinery's."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [each for each in frames if not each.filename.startswith("<frozen") and each.filename not in _MACHINERY]
    return "".join(f"\n  {shown_frame(each)}" for each in theirs[-SHOWN_FRAMES:])


_MACHINERY: Final = (__file__, importlib.__file__)
