"""How far the tests go: scenes and modes that together take about two minutes of one core."""

EXPLORED = [
    *(
        (scene, "plain")
        for scene in (
            "two-claimers", "two-takers", "claimer-reaper", "done-reap", "beat-reap", "first-crash", "add-claim", "two-keys",
            "key-janitor", "resume-zombie", "cancel-done", "cancel-claim", "edit-claim", "edit-edit", "drop-ingest",
            "drop-ingest-ingest", "fail-reap", "release-reap", "done-done", "claim-sweep", "look-move", "release-twice",
            "twin-sweep-claim", "sweep-done",
        )
    ),
    *((scene, "crash") for scene in ("two-claimers", "done-reap", "cancel-done", "cancel-claim", "edit-claim", "drop-ingest", "add-claim")),
    *((scene, "lost") for scene in ("two-claimers", "cancel-done", "edit-claim", "release-reap", "drop-ingest")),
    *((scene, "stale") for scene in ("two-claimers", "beat-reap", "resume-zombie", "cancel-done", "edit-claim")),
    *((scene, "torn") for scene in ("two-takers", "drop-ingest", "cancel-claim")),
    *((scene, "fault") for scene in ("two-takers", "cancel-done", "drop-ingest", "add-claim")),
]  # fmt: skip
CUT = ("two-claimers", "done-reap", "two-keys", "cancel-done", "edit-claim")
CROWDS = 80
