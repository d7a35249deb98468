"""Real workers on real servers under chosen faults, and the promises they keep, checked from outside.

`python -m tests.chaos --help` says how to run it; `docs/chaos.md` says what it shows.
"""
