"""What a box of any picture says, and the colours of the states. Texts of tasks come out without control characters."""

from __future__ import annotations

from taskyard.core import needs
from taskyard.doors.cli import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.graph import Node

COLOURS = {
    "todo": ("#dbeafe", "#1d4ed8"),
    "waiting": ("#fef3c7", "#a16207"),
    "blocked": ("#ede9fe", "#6d28d9"),
    "processing": ("#cffafe", "#0e7490"),
    "done": ("#dcfce7", "#15803d"),
    "failed": ("#fee2e2", "#b91c1c"),
    "cancelled": ("#e5e7eb", "#4b5563"),
}  # of the box, and of its border and the state's name
GROUP = ("#f8fafc", "#334155")
MEANING = {
    needs.BLOCK: "waits until it is done",
    needs.CANCEL: "is cancelled if it fails",
    needs.RUN: "runs even if it fails",
}


class Label:
    """The texts of one box: a name, a word beside it, a title, and a line of details."""

    __slots__ = ("detail", "name", "state", "states", "title", "word")

    def __init__(self, node: Node) -> None:
        self.states: dict[str, int] = node.get("states", {})
        """How many tasks of a group are in each state; empty for a task."""
        self.state: str | None = node.get("state")
        if self.state is None:
            self.name, self.word = _plain(node["title"]), _number(node["tasks"], "task")
            self.title = ", ".join(f"{many} {state}" for state, many in self.states.items())
            self.detail = f"longest chain to do: {node['chain']}" if node["chain"] else ""
        else:
            self.name, self.word = node["short"], str(self.state)
            self.title = _plain(node["title"] or node["kind"])
            self.detail = ", ".join(
                map(_plain, filter(None, (node["kind"] if node["title"] else None, node["worker"])))
            )

    @property
    def colours(self) -> tuple[str, str]:
        """The colours of the box and of its border."""
        return GROUP if self.state is None else COLOURS[self.state]


def summary(graph: dict[str, Any]) -> str:
    """Return one line on what the picture shows, and on what it does not."""
    folded = graph["folded"]
    text = _number(folded["tasks"] if folded else len(graph["nodes"]), "task")
    if folded:
        text += f" and {_number(folded['edges'], 'connection')} by {folded['by']}"
    if graph["critical_path"] and not folded:
        text += f"; critical path: {len(graph['critical_path'])} tasks"
    if graph["left_out"]:
        text += f"; {graph['left_out']} more left out"
    return text


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}{'s'[: number != 1]}"


def _plain(text: str) -> str:
    return output.plain(text).replace("\n", " ")
