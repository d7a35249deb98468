"""The console on servers that are stopped, started, promoted, or not there yet."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import pytest
from console_fixture import Console, Scenario, play as play_on, queue_source
from support.databases import install_schema
from support.postgres_server import Server

from gw_core import Client, JobSpec

pytestmark = pytest.mark.once

AWAY = ("down", "retrying")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def queue(server: Server) -> Server:
    """A server with a queue that contains a permanently failed job."""
    install_schema(server.url)
    with Client(server.url) as client:
        client.add(JobSpec(task="send_email", payload={}))
    server.run("update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'refused'")
    return server


def play(url: str, scenario: Scenario) -> None:
    play_on(scenario, queue_source(url), size=(80, 24), screen="jobs", filter="state:failed")


async def away(console: Console) -> None:
    await console.until(lambda: console.state.phase in AWAY and console.app.drawn_phase in AWAY)


async def live(console: Console) -> None:
    await console.until(lambda: console.app.drawn_phase == "live")
    await console.until(lambda: "LIVE" in console.text and not is_dimmed(console))


def is_dimmed(console: Console) -> bool:
    return console.app.screen.query_one("#body").has_class("-dimmed")


def attempts(server: Server) -> object:
    return server.run("select attempts from graphile_worker._private_jobs")[0][0]


def test_a_server_that_was_away_is_live_again_without_a_key_and_acts_wait_for_it(queue: Server) -> None:
    async def scenario(console: Console) -> None:
        await live(console)
        await console.shows("refused")

        await asyncio.to_thread(queue.stop)
        await away(console)
        await console.shows("Retrying in ")
        assert is_dimmed(console)
        assert "send_email" in console.text
        assert console.screen("jobs").check_action("retry", ()) is None
        await console.press("f")
        assert console.is_on("jobs")

        await asyncio.to_thread(queue.start)
        await live(console)
        assert "Retrying in " not in console.text
        assert attempts(queue) == 25
        await console.until(lambda: console.screen("jobs").check_action("retry", ()))
        await console.press("r")
        await console.until(lambda: console.app.action_runner.last is not None)
        assert await asyncio.to_thread(attempts, queue) == 0

    play(queue.url, scenario)


def test_a_server_that_crashes_is_live_again_too(queue: Server) -> None:
    async def scenario(console: Console) -> None:
        await live(console)
        await asyncio.to_thread(queue.stop, signal.SIGKILL)
        await away(console)
        await asyncio.to_thread(queue.start)
        await live(console)
        await console.shows("refused")

    play(queue.url, scenario)


def test_it_waits_for_a_server_that_is_not_there_yet_and_then_for_its_schema(server: Server) -> None:
    server.stop()

    async def scenario(console: Console) -> None:
        await away(console)
        await asyncio.to_thread(server.start)
        await console.shows("gw migrate")
        assert console.state.phase == "no schema"
        await asyncio.to_thread(install_schema, server.url)
        await live(console)

    play(server.url, scenario)


def test_it_follows_to_the_standby_which_takes_no_acts_until_it_is_promoted(queue: Server) -> None:
    with Server(copy_of=queue) as standby:
        both = f"postgres://postgres@127.0.0.1:{queue.port},127.0.0.1:{standby.port}/postgres"

        async def scenario(console: Console) -> None:
            await live(console)
            await console.shows("READ-WRITE")
            await asyncio.to_thread(queue.stop, signal.SIGQUIT)
            await console.shows("READ-ONLY")
            await live(console)
            await console.shows("refused")
            await asyncio.to_thread(standby.promote)
            await console.shows("READ-WRITE")
            await console.until(lambda: console.screen("jobs").check_action("retry", ()))
            await console.press("r")
            await console.until(lambda: console.app.action_runner.last is not None)
            assert await asyncio.to_thread(attempts, standby) == 0

        play(both, scenario)
