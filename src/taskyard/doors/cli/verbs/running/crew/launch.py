"""Started as a program, this runs the command line of the Taskyard that it belongs to.

With -P, no file in a worker's folder is imported as a module of ours. This tree is appended last, for a supervisor that
was itself found through its working directory.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 6)))
    from taskyard.doors.cli import main

    sys.exit(main())
