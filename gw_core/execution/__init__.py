"""Call one task once, wherever it runs: in a thread, on the event loop, as a program or in a process of its own."""
