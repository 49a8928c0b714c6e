"""The event log: written by everyone, read as one stream."""
