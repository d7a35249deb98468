"""Add jobs from the command line, Python, SQL and a trigger, run them, and show what happened.

`make demo` runs this. It needs nothing but an installed gw: `embedded:` brings the PostgreSQL.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from gw_core import Client
from gw_core.embedded import start_or_attach

HERE = Path(__file__).parent
FIRST_RETRY_SECONDS = 3


def main() -> None:
    os.chdir(HERE)
    forget_settings()
    os.environ["DATABASE_URL"] = "embedded:"
    began = time.monotonic()
    # Held for the whole demo, so that each command below only attaches to it.
    with start_or_attach("embedded:") as server:
        say(f"A PostgreSQL in {server.folder}, ready after {time.monotonic() - began:.1f} s")
        say("The schema")
        gw("migrate")

        say("Jobs from the command line")
        gw("add", "hello", "--payload", '{"name":"Bobby Tables"}')
        gw("add", "shout", "--payload", '"any language will do"')
        gw("add", "flaky", "--payload", '{"failures":1}')

        say("A job from Python")
        show("""Client('embedded:').add('hello', {'name': 'Python'})""")
        with Client("embedded:") as client:
            client.add("hello", {"name": "Python"})

        say("Jobs from SQL and from a trigger")
        show("psql -f from_sql.sql")
        with psycopg.connect(server.conninfo) as connection:
            connection.execute((HERE / "from_sql.sql").read_bytes())

        say("Run what there is")
        gw("run", "--once")

        say("One job failed and waits for its second attempt")
        gw("list")
        time.sleep(FIRST_RETRY_SECONDS)
        gw("run", "--once")

        say("Nothing is left")
        gw("list")
    say("Done, and the PostgreSQL is stopped")


def forget_settings() -> None:
    """Leave the reader's own queue alone, wherever their environment points."""
    for name in [name for name in os.environ if name.startswith(("GW_", "GRAPHILE_WORKER_", "PG"))]:
        del os.environ[name]


def gw(*arguments: str) -> None:
    show(shlex.join(("gw", *arguments)))
    # Log lines and printed lines keep their order, also in a file.
    command = [sys.executable, "-m", "gw_cli", *arguments]
    subprocess.run(command, stderr=subprocess.STDOUT, check=True)  # noqa: S603 - our own program


def say(heading: str) -> None:
    print(f"\n== {heading}", flush=True)


def show(command: str) -> None:
    print(f"$ {command}", flush=True)


if __name__ == "__main__":
    main()
