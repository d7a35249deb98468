"""Settings: one table, and the value of each from options, the environment, `gw.toml` or the default.

runner = Runner(settings=gw_cli.settings.load("gw.toml").worker_settings())
"""

from __future__ import annotations

from gw_cli.settings.resolve import Configuration, Origin, load

__all__ = ["Configuration", "Origin", "load"]
