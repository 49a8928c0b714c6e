"""Where tasks are kept: each store passes the same contract suite."""
