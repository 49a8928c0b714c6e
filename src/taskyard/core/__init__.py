"""Records and pure functions: tasks, moves, retries, settings, errors. No I/O."""
