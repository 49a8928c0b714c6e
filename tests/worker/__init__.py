"""Workers, part by part; crews of real processes are in tests/processes."""
