"""The spool: adds and endings of a time when the yard's server was away, kept in a folder until they are replayed."""
