"""The options by which verbs choose tasks: state, kind, mission, and the holder."""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.core.task import State
from taskyard.doors.cli.parser import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.doors.cli.parser import Given

OPEN = frozenset(state for state in State if not state.ended)
ENDED = frozenset(State) - OPEN
OPTIONS = (
    Option(
        "--state",
        "STATE",
        "only tasks in this state, or in these (todo,failed); open: all that have not ended",
        many=True,
    ),
    Option("--kind", "KIND", "only tasks of this kind", many=True),
    Option("--mission", "TEXT", "only tasks of this mission"),
)


def states(given: Given) -> frozenset[State] | None:
    """Return the requested states: several by commas or by options, and `open` for all that have not ended."""
    texts = given.texts("state")
    if texts is None:
        return None
    found: set[State] = set()
    for word in map(str.strip, ",".join(texts).split(",")):
        if word == "open":
            found |= OPEN
        elif word in set(State):
            found.add(State(word))
        else:
            raise Invalid(
                f"not a state: {word!a}", hint=f"states are {', '.join(State)}, and open: all that have not ended"
            )
    return frozenset(found)
