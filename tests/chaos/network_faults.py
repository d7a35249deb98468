"""Roads from workers to the servers on which bytes can be held, lost or delayed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Final

from support.database_proxy import ALL_SESSIONS, DatabaseProxy  # noqa: F401 - the one proxy of all tests


class NetworkPath(DatabaseProxy):
    """Passes bytes between clients and one server. While it is cut, bytes wait, and so do new connections."""

    def __init__(self, port: Callable[[], int]) -> None:
        super().__init__("", target=lambda: ("127.0.0.1", port()))

    def cut(self) -> None:
        self.hold()

    def repair(self, *, forgetful: bool) -> None:
        """Let the bytes that wait go on; a `forgetful` network has lost them, and the connections break."""
        if forgetful:
            self.break_all()
        self.heal()


# -- network namespaces -----------------------------------------------------------------------------------------------

OUTSIDE: Final = "10.213.77.1"
INSIDE: Final = "10.213.77.2"
UNUSED_ADDRESS: Final = "02:00:00:00:00:01"


class Namespace:
    """A network of its own for a worker, tied to ours by one cable. Cut, the kernel itself drops what it sends."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._cable = f"gwc{os.getpid() % 100_000}"
        _ip("netns", "add", name)
        _ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("address", "add", f"{OUTSIDE}/30", "dev", self._cable)
        _ip("link", "set", self._cable, "up")
        _ip("-n", name, "address", "add", f"{INSIDE}/30", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")

    @property
    def prefix(self) -> tuple[str, ...]:
        return ("ip", "netns", "exec", self.name)

    def cut(self) -> None:
        # Either side sends to a card that is not there: packets are dropped without an error.
        _ip("neighbour", "replace", INSIDE, "lladdr", UNUSED_ADDRESS, "nud", "permanent", "dev", self._cable)
        inside = ("replace", OUTSIDE, "lladdr", UNUSED_ADDRESS, "nud", "permanent", "dev", "eth0")
        _ip("-n", self.name, "neighbour", *inside)

    def repair(self, *, forgetful: bool) -> None:
        _ip("neighbour", "delete", INSIDE, "dev", self._cable)
        _ip("-n", self.name, "neighbour", "delete", OUTSIDE, "dev", "eth0")

    def close(self) -> None:
        _ip("netns", "delete", self.name)


def can_make_namespaces() -> bool:
    """Whether this user on this machine may, and the addresses are unused."""
    name = f"gw-chaos-try-{os.getpid()}"
    try:
        taken = OUTSIDE in _ip("-4", "address", "show")
        _ip("netns", "add", name)
        _ip("netns", "delete", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    return not taken


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
