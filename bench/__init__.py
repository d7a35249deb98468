"""Measure gw beside its peers: `python -m bench --help`."""
