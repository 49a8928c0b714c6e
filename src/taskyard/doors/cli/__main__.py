"""`python -m taskyard.doors.cli` is the command line."""

import sys

from taskyard.doors.cli import main

sys.exit(main())
