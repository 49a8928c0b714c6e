"""A yard in one process's memory."""
