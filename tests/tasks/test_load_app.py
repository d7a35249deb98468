"""Loading the registry of an application by its name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.task_builders import write

from gw_core.front_ends import TaskLoadError, load_app

REGISTRY = """
from typing import TypedDict
from gw_core.tasks.registry import TaskRegistry

registry = TaskRegistry()

@registry.task
def send(payload: "Mail"): ...

class Mail(TypedDict):
    to: str

def make():
    return registry

def breaks():
    return 1 / 0

def wrong():
    return 7

class Holder:
    tasks = registry
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - modules:
        if name.startswith("shop_"):
            del sys.modules[name]


@pytest.mark.parametrize("spec", ["shop_app:registry", "shop_app.registry", "shop_app:make", "shop_app:Holder.tasks"])
def test_the_registry_is_found(project: Path, spec: str) -> None:
    write(project / "shop_app.py", REGISTRY)

    assert load_app(spec).identifiers == ("send",)


@pytest.mark.parametrize("spec", ["shop_pkg.tasks:registry", "shop_pkg.tasks.registry"])
def test_packages_work(project: Path, spec: str) -> None:
    write(project / "shop_pkg" / "__init__.py", "")
    write(project / "shop_pkg" / "tasks.py", REGISTRY)

    assert load_app(spec).identifiers == ("send",)


def test_the_current_folder_comes_first(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write(other / "shop_first.py", "registry = None\n")
    sys.path.insert(0, str(other))
    write(project / "shop_first.py", REGISTRY)

    assert load_app("shop_first:registry").identifiers == ("send",)


@pytest.mark.parametrize(
    ("spec", "source", "sentence"),
    [
        pytest.param("shop_none:registry", None, "there is no module shop_none in", id="no module"),
        pytest.param("shop_a.b:registry", "", "there is no module shop_a", id="no submodule"),
        pytest.param("shop_a:tasks", REGISTRY, "has no tasks; it has registry", id="no attribute"),
        pytest.param("shop_a:tasks", "x = 1", "has no tasks; it has no TaskRegistry at all", id="no registry"),
        pytest.param("shop_a:x", "x = 1", "is of type int; name a TaskRegistry", id="wrong type"),
        pytest.param("shop_a:wrong", REGISTRY, "calling it returned int, not a TaskRegistry", id="wrong factory"),
        pytest.param("shop_a:breaks", REGISTRY, "calling it failed: ZeroDivisionError", id="broken factory"),
        pytest.param("shop_a:x", "import shop_missing", "importing shop_a failed: ModuleNotFoundError", id="inner"),
        pytest.param("shop_a:x", "import sys; sys.exit(2)", r"calls sys.exit\(2\) when imported", id="sys.exit"),
        pytest.param("shop_a:x", "def (", "importing shop_a failed: SyntaxError", id="syntax"),
        pytest.param("shop_a", "", "write it as package.module:registry", id="module alone"),
        pytest.param("", "", "write it as package.module:registry", id="empty"),
        pytest.param("shop_a:", "", "write it as package.module:registry", id="empty attribute"),
        pytest.param("../shop_a:x", "", "write it as package.module:registry", id="path"),
        pytest.param(
            "shop_a:r",
            "from gw_core.tasks.registry import TaskRegistry\nr = TaskRegistry()\n@r.task\ndef f(p: 'Nope'): ...",
            "'Nope' is not defined",
            id="annotation",
        ),
    ],
)
def test_what_cannot_be_loaded_is_one_clear_error(project: Path, spec: str, source: str | None, sentence: str) -> None:
    if source is not None:
        write(project / "shop_a.py", source)

    with pytest.raises(TaskLoadError, match=sentence):
        load_app(spec)


def test_the_cause_is_shown_with_its_place(project: Path) -> None:
    path = write(project / "shop_a.py", "\nregistry = 1 / 0\n")

    with pytest.raises(TaskLoadError) as caught:
        load_app("shop_a:registry")

    assert str(caught.value).splitlines()[1:] == [f"  {path}:2: registry = 1 / 0"]
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_application_is_loaded_after_the_current_folder_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deleted_folder: None
) -> None:
    (tmp_path / "elsewhere_app.py").write_text("from gw_core import TaskRegistry\n\nregistry = TaskRegistry()\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    assert load_app("elsewhere_app:registry").identifiers == ()
    with pytest.raises(TaskLoadError, match="there is no module nosuch in the current folder, which was deleted, or"):
        load_app("nosuch:registry")
