"""The event log: written by all processes, read as one stream."""
