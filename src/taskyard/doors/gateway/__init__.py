"""The gateway: one process that serves yards over HTTP, to agents that cannot reach the directory or the database.

`app` takes requests in by the table of routes, and answers them. `actions` turns each into one call of the Yard port. `hub` lets
any number of requests wait without a thread each. `types` checks and documents arguments. `server` runs it all.
"""
