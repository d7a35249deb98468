"""A logger of a test, and what is logged with it."""

from __future__ import annotations

import logging
import threading
from itertools import count

DEADLINE = 60.0

_NUMBERS = count()


class LogRecorder(logging.Handler):
    """Keeps the records of a logger of its own, and lets a test wait for a message."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self._came = threading.Condition()
        self.logger = logging.getLogger(f"test_log_{next(_NUMBERS)}")
        self.logger.propagate = False
        self.logger.setLevel(logging.DEBUG)
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        with self._came:
            self.records.append(record)
            self._came.notify_all()

    @property
    def messages(self) -> list[tuple[str, str]]:
        """What was logged, as (level, message)."""
        return [(record.levelname.lower(), record.getMessage()) for record in list(self.records)]

    def of(self, level: str) -> list[str]:
        return [message for each, message in self.messages if each == level]

    def wait_for(self, message: str) -> None:
        with self._came:
            came = self._came.wait_for(lambda: message in [text for _, text in self.messages], DEADLINE)
        assert came, self.messages
