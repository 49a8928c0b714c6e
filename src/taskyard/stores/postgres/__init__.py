"""The PostgreSQL store: one yard is one project in a database; `store.py` puts the parts together."""
