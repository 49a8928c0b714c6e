"""The events that are about the yard, and about no task: their `task` is an empty text, and their fence 0."""

from __future__ import annotations

YARD_EVENTS = (
    "paused", "unpaused", "configured", "token_made", "token_revoked", "mission_made", "mission_cancelled",
    "schedule_made", "schedule_paused", "schedule_unpaused", "schedule_removed", "pruned", "file_conflicts",
)  # fmt: skip
TEAM_EVENTS = ("team_made", "team_changed", "team_given", "team_taken")
"""The same of teams, in the log of every project that they concern: only a store with teams has them."""
