"""The table of verbs: the module and the aliases of each, and their groups in the help.

The verbs of a worker, and those that put work in, look and steer, have their modules here; `running` and `upkeep` have the others.
"""

from __future__ import annotations

from taskyard.core.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.doors.cli.parser import Command

# The six verbs of a worker come first: most workers need no others.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "For a worker": {
        "ready": ("list_tasks", "what could be claimed now"),
        "claim": ("claim", "take one task; prints the handle that the other verbs need"),
        "note": ("heartbeat", "leave a word for the next worker of the task"),
        "done": ("done", "end the task, with a result if there is one"),
        "fail": ("done", "give up with a reason; tried again while attempts are left"),
        "release": ("release", "hand the task back untouched"),
    },
    "For an agent": {
        "prime": ("prime", "print what an agent must know; put it into the settings of its client"),
        "mcp": ("mcp", "serve the yard to an agent, as tools of the Model Context Protocol"),
    },
    "Put work in": {
        "init": ("init", "make a yard"),
        "add": ("add", "add a task, or many from a file"),
        "import": ("import_tasks", "bring in the tasks of another tool"),
        "mission": ("mission", "a named goal that groups tasks: make, list, show, cancel"),
        "sync": ("sync", "a TASKS.md that people plan in, in two-way sync"),
        "schedule": ("schedule", "tasks that are added again and again, by cron expressions"),
    },
    "Look": {
        "list": ("list_tasks", "tasks by state, kind, mission or worker"),
        "show": ("show", "everything about one task"),
        "graph": ("graph", "the picture of which task comes after which"),
        "why": ("why", "why nothing is ready, or why one task is where it is"),
        "stats": ("stats", "how many tasks of each kind are in each state"),
        "log": ("log", "what happened, and with --follow what happens"),
        "wait": ("wait", "wait until tasks have ended"),
        "watch": ("log", "wait for the next thing that happens"),
    },
    "Steer": {
        "cancel": ("cancel", "call tasks off: by id, or all that match"),
        "retry": ("cancel", "have failed, cancelled or waiting tasks tried now"),
        "accept": ("review", "accept what a worker has submitted: the task is done"),
        "reject": ("review", "reject it with a note: the task is done again"),
        "edit": ("edit", "change a task that no worker holds"),
        "pause": ("pause", "hand out nothing more, of one kind or at all"),
        "unpause": ("pause", "hand out again"),
        "settings": ("settings", "print the yard's settings, or change some"),
    },
    "Run workers": {
        "work": ("running.work", "run a command once for each task"),
        "crew": ("running.crew", "run several workers as a file names them, and watch them"),
        "worktree": ("running.worktree", "the git worktrees of claims: what is kept and why; clean up"),
        "guard": ("running.fence", "run a command only while a claim holds"),
        "fence": ("running.fence", "print a claim's fence; exit 4 if the claim is over"),
        "publish": ("running.fence", "put a file in place, never over a later claim's"),
        "orchestrate": ("running.orchestrate", "keep a yard going in one loop, and assign tasks; one of several leads"),
        "top": ("running.top", "the yard at a glance, live: who works on what, what needs you"),
        "serve": ("running.serve", "serve a yard over HTTP, to agents on other machines"),
        "token": ("running.token", "who may use the yard through a gateway: new, list, revoke"),
        "team": ("running.team", "teams own projects of a database: quotas over all of them"),
        "sh": ("running.sh", "print the shell client, for places without Python"),
        "demo": ("running.demo", "watch a crew at work; one is killed, one is stopped, nothing is lost"),
        "alive": ("running.alive", "for health checks: does this worker, janitor or gateway give signs of life?"),
        "heartbeat": ("heartbeat", "renew the lease of a claim"),
        "resume": ("claim", "take my claims again after a restart"),
    },
    "Keep it going": {
        "prune": ("upkeep.prune", "let ended tasks go to the archive"),
        "export": ("upkeep.export", "write the yard to a file: JSON Lines, Markdown, or its log"),
        "copy": ("upkeep.copy", "copy a paused yard to another store"),
        "doctor": ("upkeep.doctor", "is this place safe for a yard?"),
        "torture": ("upkeep.torture", "prove it here: kill and stop workers in a scratch yard, and check every answer"),
        "spool": ("upkeep.spool", "what was said while the database was away: show it, replay it"),
        "migrate": ("upkeep.migrate", "bring the schema of a yard in PostgreSQL up to date"),
        "janitor": ("upkeep.janitor", "take in, give back what dead workers left, wake what is due"),
        "fsck": ("upkeep.fsck", "prove that every task is in one legal state; with --repair heal what is not"),
    },
    "About this program": {
        "help": ("help", "show this, or all about one verb"),
        "version": ("help", "show the version"),
    },
}
ALIASES = {"create": "add", "next": "claim", "start": "claim", "complete": "done", "close": "done"}


def called(name: str) -> str:
    """Return the verb's own name, for a name or an alias."""
    return ALIASES.get(name, name)


def command(name: str) -> Command:
    """Return the verb of this name or alias; its module is imported only here."""
    verb = called(name)
    for group in GROUPS.values():
        if verb in group:
            # Not importlib.import_module, which costs 0.4 ms more.
            commands: dict[str, Command] = __import__(
                f"taskyard.doors.cli.verbs.{group[verb][0]}", fromlist=("COMMANDS",)
            ).COMMANDS
            return commands[verb]
    from taskyard.doors.cli import other_words

    raise Invalid(f"there is no verb {ascii(name)[:60]}", hint=other_words.verb(name))
