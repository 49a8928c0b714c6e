"""A whole yard, read and written for a copy."""
