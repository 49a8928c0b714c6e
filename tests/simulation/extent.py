"""How far the tests go: scenes and modes that together take about three minutes of one core."""

# Two claimers; a claimer and a reaper; done and a reap; a key and a key, and the janitor; resume and a zombie; cancel and done;
# edit and claim; drop and ingest; the first crash and a late done.
FEARED = (
    "two-claimers", "claimer-reaper", "done-reap", "two-keys", "key-janitor", "resume-zombie", "cancel-done", "edit-claim",
    "drop-ingest", "first-crash",
)  # fmt: skip
OTHERS = (
    "two-takers", "beat-reap", "add-claim", "cancel-claim", "edit-edit", "drop-ingest-ingest", "fail-reap", "release-reap",
    "done-done", "claim-sweep", "sweep-done", "release-twice", "twin-sweep-claim", "look-move",
    "prune-key", "prune-retry", "add-work", "two-drops", "edit-sweep", "edit-apart", "use-use", "vouched-reap", "vouched-gone",
    "add-take", "broken-drop",
)  # fmt: skip
KEYS = ("keys-janitor", "keys-finish", "keys-log", "keys-patrol")  # three processes each
EXPLORED = [
    ("keys-janitor", "lost"),
    *((scene, "plain") for scene in (*KEYS, *FEARED, *OTHERS, "add-after-done", "after-two")),  # the longest first
    *((scene, "crash") for scene in (*FEARED, *OTHERS)),
    *((scene, "lost") for scene in (*FEARED, *OTHERS)),
    *((scene, "stale") for scene in ("two-claimers", "beat-reap", "resume-zombie", "cancel-done", "edit-claim")),
    *((scene, "torn") for scene in ("two-takers", "two-claimers", "done-reap", "drop-ingest", "cancel-claim", "cancel-done")),
    *((scene, "fault") for scene in ("two-takers", "cancel-done", "drop-ingest", "add-claim")),
]  # fmt: skip
CUT = ("two-claimers", "done-reap", "two-keys", "cancel-done", "edit-claim")
CROWDS = 80
