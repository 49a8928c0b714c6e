"""Ended tasks and old events that leave the yard for its archive."""
