"""Workers on a PostgreSQL that goes away and comes back: what they asked for and were told is held against the promise.

python -m tests.postgres.outages --tasks 10000 [SCENARIO...]
"""
