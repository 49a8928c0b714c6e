"""The spool: what was said while the database was away."""
