"""Integrations with other libraries. Each module imports its library itself and is imported by nothing else in gw."""
