"""`python -m taskyard`, and the program `taskyard`, are the command line."""

from __future__ import annotations

import atexit
import gc
import os
import sys

_OBJECTS = (
    50_000  # made before the next collection: a claim makes fewer, and spent 12 of 146 million instructions on it
)


def run() -> int:
    """Run the command of this process, and end it; return the exit code if the interpreter has to end in its own way."""
    gc.set_threshold(_OBJECTS)
    if os.getpid() == 1:
        from taskyard.doors.cli import first_process

        first_process.stand_in()
    from taskyard.doors.cli import main

    code = main()
    # Taking the interpreter apart is a tenth of a claim.
    if not _has_more_to_do():
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            return code
        os._exit(code)
    return code


def _has_more_to_do() -> bool:
    """Whether a thread, a tool that watches, or what was put off until the end has something to do yet."""
    threading = sys.modules.get("threading")
    return (
        (threading is not None and threading.active_count() > 1)
        or atexit._ncallbacks() > 0
        or sys.getprofile() is not None
        or sys.gettrace() is not None
    )


if __name__ == "__main__":
    sys.exit(run())
