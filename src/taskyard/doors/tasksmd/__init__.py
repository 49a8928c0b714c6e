"""TASKS.md: a Markdown file that people plan in, in two-way sync with a yard."""
