"""The tour: what `taskyard demo` shows."""
