"""A driver on libpq by ctypes, for processes of one command: what psycopg does, in a twentieth of the time to load.

It is written by hand because of that time alone: to import psycopg takes 90 to 100 ms, and a whole `taskyard prime` on a
directory 35. psycopg has the modules of its asynchronous half, its pools and every type loaded before its first statement,
and none of that can be left out from outside. libpq itself does the work there as here: this loads the one that psycopg's
wheel brings, and asks it for what `connection.Connection` names, and no more.

Correctness never depends on it. Where libpq cannot be loaded, or an address needs what this does not do, psycopg connects.
A process that lasts uses psycopg from the beginning: it prepares statements, and reads results faster.
"""
