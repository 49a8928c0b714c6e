"""The rules of the promise, each a function from a recorded history to violations."""
