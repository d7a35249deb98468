"""How long statements take in the server, reported to the session that ran them, so no log is read."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Final

from psycopg.conninfo import make_conninfo
from psycopg.errors import Diagnostic

from gw_core import Client
from gw_core.postgres.connection.database import Connection
from gw_core.postgres.connection.statements import numbered_query, sql_folder

SCHEMA: Final = "graphile_worker"
TELLING: Final = "-c log_min_duration_statement=0 -c client_min_messages=log -c log_parameter_max_length=0"
"""Planning is in it: each message of the protocol is timed, to parse, to bind and to execute."""
_DURATION: Final = re.compile(r"duration: ([\d.]+) ms  \w+ [^:]*: (.*)", re.DOTALL)
_OTHERS: Final = 30


def with_timing(url: str) -> str:
    """Return a connection string for sessions that receive the durations of their statements; needs a superuser."""
    return make_conninfo(url, options=TELLING)


@dataclass(slots=True)
class ServerTiming:
    """Milliseconds by statement since they were last taken away; one thread at a time."""

    _durations: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _received: Connection | None = None

    def receive(self, client: Client) -> int:
        """Listen to the one connection of a client, a new one as well, and return its server process."""
        with client._connections.connection() as connection:
            if connection is not self._received:
                connection.add_notice_handler(self._note)
                self._received = connection
            return connection.info.backend_pid

    def take(self) -> Mapping[str, float]:
        """Return what was received since the last call."""
        durations, self._durations = self._durations, defaultdict(float)
        return durations

    def _note(self, notice: Diagnostic) -> None:
        if duration := _DURATION.match(notice.message_primary or ""):
            self._durations[_name(duration[2])] += float(duration[1])


@lru_cache(maxsize=512)
def _name(statement: str) -> str:
    text = statement.strip()
    return _names().get(text, " ".join(text.split())[:_OTHERS])


@lru_cache(maxsize=1)
def _names() -> Mapping[str, str]:
    """Return the names of our statements by their texts, as the driver sends them."""
    files = Path(str(sql_folder()), "queries").glob("*.sql")
    return {numbered_query(file.stem, SCHEMA)[0].decode().strip(): file.stem for file in files}


def percentile(durations: Sequence[float], share: float) -> float:
    """Return the smallest value that at least a share of all do not exceed."""
    return sorted(durations)[max(1, ceil(share * len(durations))) - 1]
