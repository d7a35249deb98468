"""The rules that workers follow, and their settings and events."""
