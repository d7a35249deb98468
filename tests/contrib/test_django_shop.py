"""A shop built with the chapter on Django: from `startproject` to the services of the Compose file."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import psycopg
import pytest
from support.waiting import free_port, wait_until

pytest.importorskip("django")
if sys.version_info < (3, 12):
    pytest.importorskip("django_tasks")

pytestmark = pytest.mark.timeout(600)

FILES = Path(__file__).with_name("django_shop")
COMPOSE = Path(__file__).parents[2] / "examples" / "deploy" / "django-compose.yaml"
DEADLINE = 60


class Shop:
    """The project in a folder, with a database."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.folder = folder
        self.url = database_url
        self.environment = {**os.environ, "DATABASE_URL": database_url, "PYTHONPATH": str(folder)}

    def run(self, *arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.environment,
            text=True,
            capture_output=True,
            timeout=300,
        )
        assert done.returncode == code, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout + done.stderr

    def manage(self, *arguments: str, code: int = 0) -> str:
        return self.run("manage.py", *arguments, code=code)

    @contextmanager
    def service(self, command: list[str], variables: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
        """Run a command as Compose does, and end it as Compose does."""
        process = subprocess.Popen(
            [sys.executable if command[0] == "python" else command[0], *command[1:]],
            cwd=self.folder,
            env={**self.environment, **variables},
        )
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=DEADLINE) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
        finally:
            process.kill()
            process.wait()

    def mails(self) -> int:
        """Count the mails; those that are sent at the same time may share a file."""
        return sum(path.read_text().count("Subject: ") for path in (self.folder / "mails").glob("*"))

    def value(self, statement: str) -> Any:
        with psycopg.connect(self.url) as session:
            [row] = session.execute(statement.encode()).fetchall()
        return row[0]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as its developers write it, before it has a database."""
    folder = tmp_path_factory.mktemp("project")
    made = Shop(folder, "postgres:///nowhere")
    made.run("-m", "django", "startproject", "shop", ".")
    shutil.copytree(FILES / "orders", folder / "orders", ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "shop" / "settings.py").open("a") as settings:
        settings.write((FILES / "settings_of_the_manual.py").read_text())
    (folder / "shop" / "urls.py").write_text(
        "from django.contrib import admin\nfrom django.urls import include, path\n\n"
        'urlpatterns = [path("admin/", admin.site.urls), path("", include("orders.views"))]\n'
    )
    made.manage("makemigrations", "orders")
    return folder


@pytest.fixture
def shop(project: Path, tmp_path: Path, empty_database_url: str) -> Shop:
    shutil.copytree(project, tmp_path, dirs_exist_ok=True)
    return Shop(tmp_path, empty_database_url)


# -- development -------------------------------------------------------------------------------------------------------

CHECKED = """
from django.core.management import call_command
call_command("check", databases=["default"], fail_level="WARNING")
call_command("migrate")
call_command("check", databases=["default"], fail_level="WARNING")
call_command("makemigrations", check_changes=True, dry_run=True)
"""
BACKED_UP_AND_FLUSHED = """
from django.core.management import call_command
from orders.views import place_order
call_command("check", databases=["default"], fail_level="WARNING")
place_order("ann@example.org", 20)
call_command("dumpdata", verbosity=0, output="backup.json")
call_command("flush", interactive=False, verbosity=0)
place_order("ann@example.org", 20)
"""


def test_a_project_is_checked_migrated_backed_up_and_flushed(shop: Shop) -> None:
    found = shop.manage("shell", "--verbosity", "0", "-c", CHECKED)
    assert (found.count("no issues"), "No changes" in found, "graphile_worker.W" in found) == (2, True, False)

    assert "orders.tasks.delete_old_carts" in shop.manage("gw", "cron", "next")
    (shop.folder / "crontab").write_text("0 4 * * 0 orders.tasks.delete_old_carts ?id=weekly {kwargs: {days: 1}}\n")
    assert "weekly" in shop.manage("gw", "cron", "parse")

    shop.manage("shell", "--verbosity", "0", "-c", BACKED_UP_AND_FLUSHED)
    models = {each["model"] for each in json.loads((shop.folder / "backup.json").read_text())}
    assert ("orders.order" in models, "graphile_worker.job" in models) == (True, False)
    shop.manage("gw", "run", "--once")
    assert shop.value("select count(*) from orders_invoice") == 1
    assert shop.mails() == 1


def test_the_tests_of_the_shop_pass_in_parallel(shop: Shop) -> None:
    output = shop.manage("test", "--noinput", "--parallel", "2")

    assert "Ran 7 tests" in output
    assert "\nOK" in output


# -- the services ------------------------------------------------------------------------------------------------------


def services() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


@contextmanager
def running_services(shop: Shop) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start what the Compose file starts, in its order; yield the address of the web server and the workers."""
    found = services()
    assert list(found) == ["database", "migrate", "web", "worker"]
    variables = {"DJANGO_SETTINGS_MODULE": found["worker"]["environment"]["DJANGO_SETTINGS_MODULE"]}
    migrate = found["migrate"]["command"]
    assert migrate[0] == "python"
    shop.run(*migrate[1:])
    web, port = found["web"]["command"], str(free_port())
    web = [each.replace("0.0.0.0:8000", f"127.0.0.1:{port}") for each in web]
    if find_spec("gunicorn") is None:
        web = ["python", "manage.py", "runserver", "--noreload", port]
    else:
        web = ["python", "-m", *web]
    with ExitStack() as stack:
        workers, tests = [], []
        for _ in range(found["worker"]["deploy"]["replicas"]):
            probe = str(free_port())
            command, test = (
                [each.replace("9455", probe) for each in words]
                for words in (found["worker"]["command"], found["worker"]["healthcheck"]["test"])
            )
            assert test[:2] == ["CMD", "python"]
            workers.append(stack.enter_context(shop.service(command, variables)))
            tests.append(test[2:])
        for test in tests:
            wait_until(lambda test=test: is_healthy(shop, test), every=0.5)
        stack.enter_context(shop.service(web, variables))
        address = f"http://127.0.0.1:{port}"
        wait_until(lambda: answer(f"{address}/order/-1", {}) is not None)
        yield address, workers


def is_healthy(shop: Shop, arguments: list[str]) -> bool:
    return subprocess.run([sys.executable, *arguments], cwd=shop.folder, capture_output=True).returncode == 0


def answer(url: str, data: Mapping[str, str] | None = None) -> dict[str, Any] | None:
    """Return what the web server answers; None while there is none."""
    try:
        with urlopen(Request(url, data=None if data is None else b""), timeout=DEADLINE) as response:
            found: dict[str, Any] = json.load(response)
    except HTTPError as error:
        return {"code": error.code}
    except URLError:
        return None
    return found


def test_the_services_of_the_compose_file_serve_the_shop(shop: Shop) -> None:
    with running_services(shop) as (address, workers):

        def ask(path: str) -> dict[str, Any]:
            found = answer(f"{address}/{path}")
            assert found is not None
            return found

        def act(path: str) -> dict[str, Any]:
            found = answer(f"{address}/{path}", {})
            assert found is not None
            return found

        assert act("order/-1") == {"code": 409}
        for _ in range(5):
            act("order/20")
        assert len(act("orders/30")["ids"]) == 30

        report = act("report")["id"]
        wait_until(lambda: ask(f"report/{report}")["lines"] > 0)
        assert ask(f"report/{report}")["status"] == "RUNNING"
        assert act(f"report/{report}/cancel") == {"result": "cancelled"}
        assert ask(f"report/{report}")["status"] == "FAILED"

        assert act("book") == {"text": "45 lines"}

        asked = act("bank")["id"]
        wait_until(lambda: ask(f"bank/{asked}")["status"] == "FAILED")
        assert "Timeout" in ask(f"bank/{asked}")["errors"][0]

        worker, sees_the_connection = act("environment")["found"]
        assert worker in [each.pid for each in workers]
        assert sees_the_connection == "False"

        wait_until(lambda: shop.value("select count(*) from orders_invoice") == 35)
        wait_until(lambda: shop.mails() == 35)
        login = urlopen(f"{address}/admin/", timeout=DEADLINE).read().decode()
        assert re.search("Django administration", login)
    assert shop.value("select count(*) from orders_order") == 35
