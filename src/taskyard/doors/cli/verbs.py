"""Which verbs there are: in which module each lives, its other names, and how the help groups them."""

from __future__ import annotations

from taskyard.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.doors.cli.grammar import Command

# The agent's six come first: what a worker needs, and in most sessions all that it needs.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "For a worker": {
        "ready": ("listing", "what could be claimed now"),
        "claim": ("claiming", "take one task; prints the handle that the other verbs need"),
        "note": ("holding", "leave a word for whoever works on the task next"),
        "done": ("holding", "end the task, with a result if there is one"),
        "fail": ("holding", "give up with a reason; tried again while attempts are left"),
        "release": ("holding", "hand the task back untouched"),
    },
    "Put work in": {
        "init": ("making", "make a yard"),
        "add": ("adding", "add a task, or many from a file"),
    },
    "Look": {
        "list": ("listing", "tasks by state, kind, mission or worker"),
        "show": ("showing", "everything about one task"),
        "stats": ("counting", "how many tasks of each kind are in each state"),
        "log": ("telling", "what happened, and with --follow what happens"),
        "wait": ("steering", "wait until tasks have ended"),
        "watch": ("telling", "wait for the next thing that happens"),
    },
    "Steer": {
        "cancel": ("steering", "call a task off"),
        "retry": ("steering", "have a failed, cancelled or waiting task tried now"),
        "edit": ("editing", "change a task that nobody holds"),
        "pause": ("pausing", "hand out nothing more, of one kind or at all"),
        "unpause": ("pausing", "hand out again"),
    },
    "Keep it going": {
        "work": ("working", "run a command once for each task"),
        "crew": ("crewing", "run several workers as a file names them, and watch them"),
        "sh": ("shelling", "print the shell client, for places without Python"),
        "demo": ("touring", "watch a crew at work; one is killed, one is stopped, nothing is lost"),
        "heartbeat": ("holding", "renew the lease of a claim"),
        "resume": ("claiming", "take my claims again after a restart"),
        "prune": ("pruning", "let ended tasks go to the archive"),
        "copy": ("copying", "copy a paused yard to another store"),
        "doctor": ("examining", "is this place safe for a yard?"),
        "torture": ("torturing", "prove it here: kill and stop workers in a scratch yard, and check every answer"),
        "migrate": ("migrating", "bring the schema of a yard in PostgreSQL up to date"),
        "janitor": ("tending", "take in, give back what dead workers left, wake what is due"),
        "fsck": ("auditing", "prove that every task is in one legal state; with --repair heal what is not"),
    },
    "About this program": {
        "help": ("manual", "show this, or all about one verb"),
        "version": ("manual", "show the version"),
    },
}
ALIASES = {"create": "add", "next": "claim", "start": "claim", "complete": "done", "close": "done"}


def called(name: str) -> str:
    """The verb's own name, for a name or an alias."""
    return ALIASES.get(name, name)


def command(name: str) -> Command:
    """The verb of this name, or alias; its module is imported here and not before."""
    verb = called(name)
    for group in GROUPS.values():
        if verb in group:
            # Not importlib.import_module, which costs 0.4 ms more.
            commands: dict[str, Command] = __import__(
                f"taskyard.doors.cli.{group[verb][0]}", fromlist=("COMMANDS",)
            ).COMMANDS
            return commands[verb]
    from taskyard.doors.cli import other_words

    raise Invalid(f"there is no verb {ascii(name)[:60]}", hint=other_words.verb(name))
