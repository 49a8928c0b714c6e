"""`python -m taskyard` is the command line."""

import sys

from taskyard.doors.cli import main

sys.exit(main())
