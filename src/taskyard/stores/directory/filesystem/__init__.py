"""The filesystem under a yard: every call, its errors, and what it can be relied on for."""
