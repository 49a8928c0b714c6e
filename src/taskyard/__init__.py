"""Taskyard: hand work to a crew of agents through nothing but a directory.

import taskyard

yard = taskyard.init(".taskyard")
yard.add("greet", {"name": "Ada"})
with yard.claimed() as claim:
    if claim is not None:
        print("hello", claim.task.data["name"])
"""

from taskyard.core.errors import (
    Ambiguous,
    Away,
    ClaimLost,
    Conflict,
    Denied,
    Full,
    Invalid,
    NotFound,
    NoYard,
    Stuck,
    TaskyardError,
    TimedOut,
    Unavailable,
)
from taskyard.core.task import State, Task
from taskyard.opening import init, open
from taskyard.yard import Yard
from taskyard.yard.claim import Claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.worker import Fail, Job, Retry, Worker

__version__ = "0.1.0"

__all__ = [
    "Ambiguous",
    "Away",
    "Claim",
    "ClaimLost",
    "Conflict",
    "Denied",
    "Fail",
    "Full",
    "Invalid",
    "Job",
    "NoYard",
    "NotFound",
    "Retry",
    "State",
    "Stuck",
    "Task",
    "TaskyardError",
    "TimedOut",
    "Unavailable",
    "Worker",
    "Yard",
    "init",
    "open",
]


def __dir__() -> list[str]:
    """The public names, and no module that happens to be loaded."""
    return [*__all__, "__version__"]


def __getattr__(name: str) -> object:
    """What workers need is loaded when it is first asked for: a one-shot command does without."""
    if name in ("Fail", "Job", "Retry", "Worker"):
        from taskyard import worker

        return getattr(worker, name)
    raise AttributeError(f"module 'taskyard' has no attribute {name!r}")
