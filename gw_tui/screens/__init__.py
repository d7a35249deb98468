"""The screens, one module each, imported when they are first shown."""
