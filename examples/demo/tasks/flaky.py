"""A task that raises is tried again later: after e seconds, e² seconds, and so on."""

from gw_core import JobContext


def flaky(payload: dict[str, int], context: JobContext) -> None:
    if context.job.attempts <= payload["failures"]:
        raise ConnectionError("the other side is not there yet")
    context.logger.info(f"done at attempt {context.job.attempts}")
