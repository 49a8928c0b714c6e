"""The spool: adds and endings that were said while a yard's server was away, kept in a folder until they are replayed."""
