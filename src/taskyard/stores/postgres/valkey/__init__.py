"""Valkey beside PostgreSQL: it wakes waiters, hands out hints of what is ready, and shows who holds what.

PostgreSQL decides everything. What is in Valkey may be lost, late or wrong at any time: it costs time, never a task.
"""
