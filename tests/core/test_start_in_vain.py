"""A runner that cannot begin, or cannot go on, says so and leaves nothing behind."""

from __future__ import annotations

import psycopg
import pytest
from core_support import Ledger, a_registry
from support import wait_until

from gw_core import Runner, SchemaMissingError

OURS = "select count(*) from pg_stat_activity where datname = current_database() and application_name like 'gw%'"


def test_a_start_in_vain_leaves_no_connection_open(empty_database_url: str) -> None:
    runner = Runner(empty_database_url, tasks=a_registry({"work": Ledger()}), handle_signals=False, migrate=False)

    with pytest.raises(SchemaMissingError):
        runner.start()

    with psycopg.connect(empty_database_url, autocommit=True) as hands:
        # The server takes a moment to see that a client has hung up.
        wait_until(lambda: hands.execute(OURS).fetchone() == (0,))
