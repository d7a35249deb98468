"""The command line: every command opens a door of the core, calls it and hands over what came back."""
