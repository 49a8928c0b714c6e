"""A crew on one directory, before your eyes."""
