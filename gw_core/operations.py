"""Tools for operators: results of queries and actions, diagnosis, migrations and supervision."""

from gw_core.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
