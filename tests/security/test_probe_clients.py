"""Who asks the probe port: no web page under a name of its own, and no flood that keeps probes from being answered."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from gw_core.maintenance import probe_server


async def page() -> probe_server.HttpResponse:
    return probe_server.text_response(200, "numbers")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[probe_server.WebServer]:
    """A server that waits for a request for as long as the machine may pause."""
    monkeypatch.setattr(probe_server, "RESPONSE_TIMEOUT", 120.0)
    server = probe_server.WebServer("probe", "127.0.0.1", 0, {"/live": page, "/metrics": page}, guarded=("/metrics",))
    server.start()
    yield server
    server.stop()


def asked(server: probe_server.WebServer, path: str, host: str | None) -> str:
    assert server.address is not None
    header = "" if host is None else f"Host: {host}\r\n"
    with socket.create_connection(server.address, timeout=30) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\n{header}\r\n".encode())
        with client.makefile("rb") as answer:
            return answer.read().decode()


def test_a_page_under_a_name_of_its_own_cannot_read_the_metrics(server: probe_server.WebServer) -> None:
    assert asked(server, "/metrics", "evil.example:9464").startswith("HTTP/1.1 421")
    assert asked(server, "/metrics?x=1", "evil.example").startswith("HTTP/1.1 421")
    assert asked(server, "/metrics", "127.0.0.1:9464").startswith("HTTP/1.1 200")
    assert asked(server, "/live", "probes.example").startswith("HTTP/1.1 200")


@pytest.mark.parametrize(
    ("host", "known"),
    [
        (None, True),
        ("127.0.0.1:9464", True),
        ("[::1]:9464", True),
        ("10.1.2.3", True),
        ("localhost", True),
        ("worker-3:9464", True),
        ("queue.default.svc:9464", True),
        ("queue.default.svc.cluster.local", True),
        ("ip-10-0-0-1.ec2.internal", True),
        ("probes.example.com", True),
        ("PROBES.example.com.:80", True),
        ("evil.example", False),
        ("evil.example:9464", False),
        ("127.0.0.1.evil.example", False),
        ("[evil.example]:1", False),
        ("localhost.evil.example", False),
    ],
)
def test_hosts_that_no_foreign_name_server_can_answer_are_known(host: str | None, known: bool) -> None:
    assert probe_server.is_known_host(host, "probes.example.com") is known


def test_every_probe_is_answered_while_another_address_floods(server: probe_server.WebServer) -> None:
    assert server.address is not None
    with ExitStack() as flood:
        for _ in range(5):
            # The probe's connection comes first, so that it is the oldest when the flood has filled every place.
            probe = flood.enter_context(socket.create_connection(server.address, timeout=30))
            for _ in range(2 * probe_server.MAX_CLIENTS):
                flood.enter_context(
                    socket.create_connection(server.address, timeout=30, source_address=("127.0.0.2", 0))
                )
            probe.sendall(b"GET /live HTTP/1.1\r\n\r\n")
            assert probe.recv(15) == b"HTTP/1.1 200 OK"
            flood.pop_all().close()
