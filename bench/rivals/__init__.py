"""Queues on PostgreSQL to measure ours beside: each module fills a table with tasks, and drains it as its users would."""
