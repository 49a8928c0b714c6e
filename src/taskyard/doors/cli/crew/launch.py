"""Started as a program, this is the command line of the very Taskyard that it lies in.

With -P whatever lies in a worker's folder is not taken for a module of ours; this tree comes last, for a supervisor that was
itself found by its working directory.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4)))
    from taskyard.doors.cli import main

    sys.exit(main())
