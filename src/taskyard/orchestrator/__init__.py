"""The orchestrator: one loop that keeps a yard going, led by one of any number of processes. Everything also works without it."""
