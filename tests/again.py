"""Run the few tests that failed in the last run once more, one after the other and twice: a test that fails again fails the run.

With eleven thousand tests of races, one that hung on the machine's load kept good work out more than once. A second chance
hides nothing: whatever needed it is named at the end, and is to be mended. A run with many failures gets none.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOST = 5
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main(options: list[str]) -> int:
    failed = sorted(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.exists() else []
    if not 0 < len(failed) <= MOST:
        print(f"{len(failed)} tests failed: a second chance is for 1 to {MOST}")
        return 1
    for _ in range(2):
        code = subprocess.call([sys.executable, "-m", "pytest", "-n", "0", *options, *failed])
        if code:
            return code
    print("\nFLAKY: failed once, then passed twice by themselves. Find out why:", *failed, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
