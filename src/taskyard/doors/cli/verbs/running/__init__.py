"""Verbs that run workers and servers, and those that a hand-made worker needs."""
