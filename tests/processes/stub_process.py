"""A worker process without work: prints and does what its argument asks, and obeys its supervisor."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any


def main(script: dict[str, Any]) -> None:
    from gw_core.front_ends import ControlChannel

    line = ControlChannel()
    ended, reasons = threading.Event(), []

    def stop(reason: str) -> None:
        reasons.append(reason)
        if not script.get("stubborn"):
            ended.set()

    def force() -> None:
        if script.get("stubborn") != "to the last":
            reasons.append("force")
            ended.set()

    if not script.get("hangs_up"):
        line.on_command(stop=stop, force=force)
    for text in script.get("says", ()):
        os.write(2, text.encode())
    if "signal" in script and not script.get("ready", True):
        os.kill(os.getpid(), script["signal"])
    if script.get("ready", True):
        line.send_ready()
    if script.get("hangs_up"):
        line._line.close()
    if "waits_for" in script:
        while not os.path.exists(script["waits_for"]) and not ended.wait(0.01):
            pass
    elif "code" not in script and "signal" not in script:
        ended.wait(600)
    print(json.dumps({"pid": os.getpid(), "stdin": sys.stdin.read(), "reasons": reasons}), flush=True)
    if "signal" in script:
        os.kill(os.getpid(), script["signal"])
        signal.pause()
    os._exit(script.get("code", 0))


main(json.loads(sys.argv[1]))
