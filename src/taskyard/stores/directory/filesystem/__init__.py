"""The filesystem under a yard: every call, its errors, and what can be relied on."""
