"""Taskyard: hand work to a crew of agents through nothing but a directory.

import taskyard

yard = taskyard.init(".taskyard")
yard.add("greet", {"name": "Ada"})
with yard.claim() as claim:
    print("hello", claim.task.data["name"])
"""

from taskyard.claim import Claim
from taskyard.errors import (
    Ambiguous,
    ClaimLost,
    Conflict,
    Invalid,
    NotFound,
    NoYard,
    TaskyardError,
    TimedOut,
    Unavailable,
)
from taskyard.opening import init, open
from taskyard.task import State, Task
from taskyard.yard import Yard

__version__ = "0.1.0"

__all__ = [
    "Ambiguous",
    "Claim",
    "ClaimLost",
    "Conflict",
    "Invalid",
    "NoYard",
    "NotFound",
    "State",
    "Task",
    "TaskyardError",
    "TimedOut",
    "Unavailable",
    "Yard",
    "init",
    "open",
]
