"""`mcp`: the agents' door, served over standard input and output."""

from __future__ import annotations

from taskyard.doors.cli.parser import Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.doors.cli.replies import Call
    from taskyard.port import YardPort


def mcp(call: Call) -> None:
    """Serve one agent until its client goes."""
    import os

    from taskyard.doors.mcp import agent, stdio

    def opened(name: str | None) -> YardPort:
        if call.worker is None and not (os.environ.get("TASKYARD_WORKER") or os.environ.get("AGENT_ID")):
            call.worker = name
        return call.yard

    idle, grace = call.given.seconds("idle", least=1.0), call.given.seconds("grace")
    stdio.run(opened, agent.IDLE if idle is None else idle, stdio.GRACE if grace is None else grace)


COMMANDS = {
    "mcp": Command(
        mcp,
        "Serve the yard to one agent as a server of the Model Context Protocol, over standard input and output: ten tools, named as the verbs (claim, done, fail, release, note, resume, ready, show, add, wait). The agent's client starts it. "
        "It heartbeats for the agent, gives its claims back at once when the agent's process dies, and keeps them for a grace when only the connection ends. Without a name, the worker is named after the process that started it.",
        (
            ("taskyard mcp", "as the command of an MCP server, in the settings of the agent's client"),
            ("taskyard mcp --worker ada --yard /shared/yard", "under a name of its own, on that yard"),
        ),
        options=(
            Option("--idle", "S", "renew claims no longer after so long without a call (default 4h)"),
            Option("--grace", "S", "keep claims so long for an agent that disconnected (default 30s)"),
        ),
        lasts=True,
    ),
}
