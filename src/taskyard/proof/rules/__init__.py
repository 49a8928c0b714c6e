"""The rules of the promise, by subject; each rule is a function that yields violations."""
