"""Verbs that keep a yard going: prune, copy, examine, repair."""
