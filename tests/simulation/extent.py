"""How far the tests go: scenes and modes that together take about seven minutes of one core."""

# Two claimers; a claimer and a reaper; done and a reap; a key and a key, and the janitor; resume and a zombie; cancel and done;
# expire and claim; edit and claim; drop and ingest; the first crash and a late done.
FEARED = (
    "two-claimers", "claimer-reaper", "done-reap", "two-keys", "key-janitor", "resume-zombie", "cancel-done", "expire-claim", "edit-claim",
    "drop-ingest", "first-crash",
)  # fmt: skip
OTHERS = (
    "two-takers", "beat-reap", "add-claim", "cancel-claim", "edit-edit", "drop-ingest-ingest", "fail-reap", "release-reap",
    "done-done", "claim-sweep", "sweep-done", "release-twice", "twin-sweep-claim", "look-move",
    "prune-key", "prune-key-again", "prune-retry", "add-work", "two-drops", "edit-sweep", "edit-apart", "use-use", "vouched-reap", "vouched-gone",
    "use-pass", "nest-nest", "limit-limit", "use-again",
    "add-take", "broken-drop", "threads-done", "threads-take",
)  # fmt: skip
KEYS = ("keys-janitor", "keys-finish", "keys-log", "keys-patrol")  # three processes each
AFTER = (
    "add-after-fail-cancel",
    "add-after-fail-run",
    "add-after-cancel",
    "edit-after-done",
)  # a task is put behind one that ends
SHEETS = ("sheet-two", "sheet-untangle")  # the edges of a graph in one file
REVIEWS = (
    "accept-accept",
    "accept-reject",
    "reject-reject",
)  # not with kills: what nobody has reviewed goes on waiting
GONE = ("fail-untangle", "churned-need", "done-patrol")  # somebody looks for what another moves
# 156, 61, 41, 38 and 34 s of one core: a sixth of all proofs. 'python -m tests.simulation SCENE --mode lost' tries one of them.
LONG_LOST = ("claimer-reaper", "edit-edit", "prune-key-again", "expire-claim", "edit-apart")
EXPLORED = [
    *((scene, "plain") for scene in (*KEYS, *FEARED, *OTHERS, *REVIEWS, "add-after-done", "after-two", *SHEETS, "use-pass-pass", *AFTER, *GONE, "fail-untangle-cancel")),  # the longest first
    *((scene, "crash") for scene in (*FEARED, *OTHERS, *AFTER, "sheet-untangle")),  # "sheet-two" takes 76 s
    *((scene, "lost") for scene in (*FEARED, *OTHERS, *REVIEWS) if scene not in LONG_LOST),
    *((scene, "stale") for scene in ("two-claimers", "beat-reap", "resume-zombie", "cancel-done", "edit-claim", "two-keys", *GONE)),
    *((scene, "torn") for scene in ("two-takers", "two-claimers", "done-reap", "drop-ingest", "cancel-claim", "cancel-done")),
    *((scene, "foreign") for scene in ("two-takers", "cancel-done", "edit-sweep", "look-move", *GONE)),
    *((scene, "fault") for scene in ("two-takers", "cancel-done", "drop-ingest", "drop-ingest-ingest", "add-claim")),
]  # fmt: skip
CUT = ("two-claimers", "done-reap", "two-keys", "cancel-done", "edit-claim")
CROWDS = 80
