"""The orchestrator: leading, keeping a yard going, and assigning."""
