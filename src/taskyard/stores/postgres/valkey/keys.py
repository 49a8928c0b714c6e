"""The names of keys and channels. All of a project have one hash tag, so that a cluster keeps them on one node."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

PRIORITIES = range(10)
ANY = "*"  # stands for every kind: no kind is called so


class Keys:
    """The keys and channels of one project."""

    def __init__(self, project: str) -> None:
        # A brace within the name would end the hash tag.
        name = project.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
        self.prefix = f"taskyard:{{{name}}}:"
        self.events = f"{self.prefix}events"
        self.look = f"{self.prefix}look"
        self.generation = f"{self.prefix}generation"
        self.leader = f"{self.prefix}leader"
        self.cursor = f"{self.prefix}cursor"

    def lock(self, task: str) -> str:
        """The key that shows who holds this task."""
        return f"{self.prefix}lock:{task}"

    def ready(self, kinds: Iterable[str] | None, worker: str) -> list[str]:
        """The lists that a claim by this worker is served from, the most urgent first."""
        names = [f"@{worker}", *([ANY] if kinds is None else sorted(kinds))]
        return [f"{self.prefix}ready:{priority}:{name}" for priority in PRIORITIES for name in names]

    def probe(self, incarnation: str) -> str:
        """The list through which one process proves that its blocking pop is served."""
        return f"{self.prefix}probe:{incarnation}"

    def echo(self, incarnation: str) -> str:
        """The channel through which one process proves that it receives messages."""
        return f"{self.prefix}echo:{incarnation}"
