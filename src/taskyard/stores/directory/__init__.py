"""A yard in a directory."""
