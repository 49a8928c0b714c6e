"""Move ended tasks and old events from the yard to its archive."""
