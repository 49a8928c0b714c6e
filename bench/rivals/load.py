"""What every queue is given to carry, and how its work is counted."""

from __future__ import annotations

import json
import time

DATA = {"file": "src/app/module.py", "note": "x" * 160}
PAYLOAD = json.dumps(DATA)


class Tally:
    """How many tasks one process has done, and when it did the last: some take seconds to see that nothing is left."""

    def __init__(self) -> None:
        self.start = self.last = time.monotonic()
        self.ended = 0

    def count(self, tasks: int = 1) -> None:
        self.ended += tasks
        self.last = time.monotonic()
