"""The doors for programs: `Client` and `AsyncClient`, and their parts."""
