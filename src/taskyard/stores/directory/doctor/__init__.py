"""Check whether a directory is safe for a yard: by the type of its file system, and by trying what a yard needs."""
