"""A task is a function named like its file; it gets the job's payload."""

from gw_core import JobContext


def hello(payload: dict[str, str], context: JobContext) -> None:
    context.logger.info(f"Hello, {payload['name']}")
