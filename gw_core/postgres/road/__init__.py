"""Statements of the road: add, claim, settle, and the rules and workers beside it."""
