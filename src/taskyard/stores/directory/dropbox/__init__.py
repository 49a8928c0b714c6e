"""Files that people and other programs put into the yard's folders."""
