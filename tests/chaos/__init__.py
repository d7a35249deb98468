"""Real workers on real servers under injected failures, and the promises they keep, checked from outside.

`python -m tests.chaos --help` explains how to run it; `docs/chaos.md` explains what it shows.
"""
