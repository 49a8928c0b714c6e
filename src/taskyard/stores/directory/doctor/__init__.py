"""Is this place safe for a yard? By what its filesystem is, and by what it does when it is tried."""
