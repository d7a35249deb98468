"""The recipe for tenants: each task runs in the schema in which it was enqueued."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.backends.signals import connection_created
from django.test import override_settings
from shop import tasks
from worker import URL

from gw_core import run_once
from gw_core.contrib.django import client, enqueue_many
from gw_core.contrib.django.worker import registry
from gw_core.front_ends import load_plugin

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "django-workers.md"
PUBLIC = "public"


@contextmanager
def schema_context(name: str) -> Iterator[None]:
    """Select a schema, as the function of django-tenants with this name does."""
    before = getattr(connection, "schema_name", PUBLIC)
    try:
        use(name)
        yield
    finally:
        use(before)


def use(name: str) -> None:
    connection.schema_name = name
    if connection.connection is not None:
        select_schema(connection)


def select_schema(connection: Any, **_: Any) -> None:
    """Select the schema in a session, also in one that was opened since."""
    with connection.cursor() as cursor:
        name = getattr(connection, "schema_name", PUBLIC)
        cursor.execute("select set_config('search_path', %s, false)", [f"{name}, {PUBLIC}"])


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Name the plugin that the manual prints."""
    package, utils = ModuleType("django_tenants"), ModuleType("django_tenants.utils")
    utils.schema_context = schema_context  # type: ignore[attr-defined]
    utils.get_public_schema_name = lambda: PUBLIC  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "django_tenants", package)
    monkeypatch.setitem(sys.modules, "django_tenants.utils", utils)
    [code] = re.findall(r"```python\n([^`]*class Tenants\(Plugin\):[^`]*)```", PAGE.read_text())
    (tmp_path / "printed_tenants.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    with connection.cursor() as cursor:
        for name in ("ann", "bob"):
            cursor.execute(f"create schema {name}")
            cursor.execute(f"create table {name}.shop_order (like public.shop_order including all)")
    connection.schema_name = PUBLIC
    connection_created.connect(select_schema)
    yield "printed_tenants:Tenants"
    connection_created.disconnect(select_schema)
    with connection.cursor() as cursor:
        cursor.execute("drop schema ann, bob cascade")
    sys.modules.pop("printed_tenants", None)


def items(schema: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(f"select item from {schema}.shop_order order by item")
        return [item for (item,) in cursor.fetchall()]


def test_tasks_run_in_the_schema_of_their_tenant(recipe: str, settings_of: Any) -> None:
    with settings_of(PLUGINS=[recipe]):
        with schema_context("ann"):
            tasks.create_order.enqueue("a book of ann")
        with schema_context("bob"):
            enqueue_many(tasks.create_order, [["a book of bob"], ["a pen of bob"]])
        tasks.create_order.enqueue("a book of the shop")
        # As a schedule or SQL adds it, past the plugin of the web process.
    client().add("shop.tasks.create_order", {"args": ["of a schedule"]})
    done = run_once(URL, tasks=registry(), plugins=[load_plugin(recipe)], migrate=False, handle_signals=False)

    assert (done.completed, done.failed) == (5, 0)
    assert items("ann") == ["a book of ann"]
    assert items("bob") == ["a book of bob", "a pen of bob"]
    assert items(PUBLIC) == ["a book of the shop", "of a schedule"]


@pytest.fixture
def settings_of() -> Any:
    def changed(**options: Any) -> Any:
        default = settings.TASKS["default"]
        return override_settings(TASKS={"default": {**default, "OPTIONS": {**default["OPTIONS"], **options}}})

    return changed
