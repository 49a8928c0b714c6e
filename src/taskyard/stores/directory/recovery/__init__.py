"""What the sweep does: overdue tasks, and what killed processes left half done."""
