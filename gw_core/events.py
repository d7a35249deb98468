"""Events of workers, jobs, recurring tasks and processes. Subscribe to them with `gw_core.Events`."""

from gw_core.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
