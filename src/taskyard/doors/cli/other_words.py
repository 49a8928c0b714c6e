"""Verbs and options of other tools that people and agents try here, each with the hint that the error gives.

The table is written by hand: guesses by spelling led from `delete` to `release` and from `finish` to `init`.
"""

from __future__ import annotations

_CLAIM = "'taskyard claim' takes the next task, 'taskyard claim ID' that very one"
_DONE = "'taskyard done HANDLE' ends a task that you hold"
_LEAVE = (
    "'taskyard release HANDLE' hands back a task that you hold; 'taskyard fail HANDLE --reason TEXT' counts an attempt"
)
_BEAT = "'taskyard heartbeat HANDLE' renews your claim; --progress 0.5 tells how far the work is"
_ADD = "'taskyard add KIND --title TEXT' adds a task"
_MANY = "'taskyard add --from FILE' adds a task for each line of JSON"
_LIST = "'taskyard list' shows the tasks; --state, --kind, --mission and --worker choose among them"
_SHOW = "'taskyard show ID' tells all about one task, 'taskyard stats' counts them all"
_WHO = "'taskyard list --state processing' tells who works on what"
_FAILED = "'taskyard list --state failed' shows what failed, and why"
_LOG = "'taskyard log' tells what happened, 'taskyard log --follow' what happens"
_WHY = "'taskyard why' says why nothing is ready, 'taskyard why ID' why that task is where it is"
_NEEDS = (
    "'taskyard add KIND --after ID' adds a task that waits for another; 'taskyard show ID' tells what one waits for"
)
_GONE = (
    "no task is deleted by hand: 'taskyard cancel ID' calls one off and keeps its story, 'taskyard prune' tells which "
    "ended ones could go to the archive"
)
_CANCEL = "'taskyard cancel ID' calls a task off, and a worker that holds it loses its claim"
_AGAIN = "'taskyard retry ID' has a failed or cancelled task tried anew; one that is done stays done"
_EDIT = "'taskyard edit ID' changes a task that no worker holds"
_GO_ON = (
    "'taskyard resume' takes your own claims again, 'taskyard retry ID' has an ended task tried anew, 'taskyard unpause' "
    "ends a pause"
)
_STOP = "'taskyard release HANDLE' hands back your task, 'taskyard pause' hands out nothing more; Ctrl-C ends a worker"
_WORK = "'taskyard work -- CMD' runs CMD once for each task, 'taskyard crew FILE' runs several workers"
_NO_SERVER = "a yard needs no server: 'taskyard work -- CMD' in any shell is a worker; 'taskyard serve' lets other machines use it"
_SWEEP = "'taskyard janitor' sweeps now; every claim does a share of it"
_PROVE = "'taskyard fsck' proves the yard, 'taskyard doctor' its place, 'taskyard crew --check FILE' a crew's file"
_HELP = "'taskyard help' lists the verbs, 'taskyard demo' shows a crew at work"

VERBS = {
    word: hint
    for words, hint in (
        ("take grab pull pop fetch dequeue reserve acquire checkout pick begin doing lock work-on", _CLAIM),
        ("comment annotate annotation message remark reply", "'taskyard note HANDLE TEXT' leaves a note on a task that you hold"),
        ("finish finished ack success succeed resolve resolved end pass mark mark-done completed", _DONE),
        ("unclaim return requeue yield unlock unassign free drop put-back error abandon giveup give-up nack", _LEAVE),
        ("renew extend touch ping keepalive keep-alive beat progress lease", _BEAT),
        ("new insert enqueue push submit put post task issue todo send append", _ADD),
        ("load bulk batch", _MANY),
        ("at later defer snooze delay", "'taskyard add KIND --delay 2h' adds a task for later; 'taskyard edit ID --delay 2h' puts one off"),
        ("cron crontab every repeat recur recurring", "'taskyard schedule add NAME CRON KIND' adds a task again and again, such as \"30 2 * * *\""),
        ("ls tasks issues items queue find search grep query filter dir", _LIST),
        ("get view describe inspect cat details info status summary overview count counts dashboard", _SHOW),
        ("who ps jobs running workers active agents locks claims", _WHO),
        ("errors failures dead dlq failed", _FAILED),
        ("history events journal tail audit follow monitor activity", _LOG),
        ("block blocked depend depends deps dep dependencies link needs tree", _NEEDS),
        ("explain stuck reason diagnose", _WHY),
        ("delete remove rm del destroy discard purge clear clean cleanup archive trash erase", _GONE),
        ("abort kill revoke terminate withdraw skip wontfix", _CANCEL),
        ("reopen open redo rerun again reset replay undo restart", _AGAIN),
        ("update set modify change rename move mv priority prioritize reprioritize retitle tag label", _EDIT),
        ("assign delegate handoff", "'taskyard edit ID --assignee NAME' keeps a task for one worker, as 'taskyard add KIND --assignee NAME' does"),
        ("continue recover unpark", _GO_ON),
        ("stop quit exit off halt", _STOP),
        ("hold freeze suspend disable park", "'taskyard pause KIND' hands out no more of a kind, 'taskyard pause' nothing at all"),
        ("thaw enable unfreeze unhold", "'taskyard unpause KIND' hands out a kind again, 'taskyard unpause' the yard"),
        ("run exec worker agent process loop consume listen", _WORK),
        ("drain", "'taskyard work --drain -- CMD' works until nothing is left"),
        ("up server daemon ui web board", _NO_SERVER),
        ("sweep reap gc tidy vacuum", _SWEEP),
        ("check verify validate lint test health", _PROVE),
        ("bench stress chaos", "'taskyard torture' kills and stops workers in a scratch yard, and checks every answer"),
        ("setup make mkdir install", "'taskyard init' makes a yard"),
        ("upgrade update-schema", "'taskyard migrate' brings the schema of a yard in PostgreSQL up to date"),
        ("clone backup cp dump", "'taskyard export FILE' writes the whole yard to a file, 'taskyard copy FROM TO' copies it to another store"),
        ("restore", "'taskyard import taskyard FILE' makes a yard of an exported file"),
        ("man usage commands quickstart tutorial", _HELP),
        ("onboard guide context", "'taskyard prime' prints what an agent must know"),
        ("config configure", "'taskyard settings' prints the yard's settings, and changes them"),
    )
    for word in words.split()
}  # fmt: skip

OPTIONS = {
    "--type": "--kind",
    "--queue": "--kind",
    "--tag": "--kind",
    "--status": "--state",
    "--name": "--title",
    "--description": "--title",
    "--desc": "--title",
    "--summary": "--title",
    "--subject": "--title",
    "--payload": "--data",
    "--body": "--data",
    "--input": "--data",
    "--params": "--data",
    "--args": "--data",
    "--depends-on": "--after",
    "--depends": "--after",
    "--needs": "--after",
    "--blocked-by": "--after",
    "--deps": "--after",
    "--owner": "--assignee",
    "--assign": "--assignee",
    "--assigned-to": "--assignee",
    "--project": "--mission",
    "--epic": "--mission",
    "--in": "--delay",
    "--countdown": "--delay",
    "--eta": "--not-before",
    "--at": "--not-before",
    "--retries": "--max-attempts",
    "--max-retries": "--max-attempts",
    "--attempts": "--max-attempts",
    "--file": "--from",
    "--output": "--result",
    "--message": "--reason",
    "--error": "--reason",
    "--agent": "--worker",
    "--as": "--worker",
    "--who": "--worker",
    "--jobs": "--concurrency",
    "--workers": "--concurrency",
    "--parallel": "--concurrency",
    "--ttl": "--lease",
    "--block": "--wait",
    "--max": "--limit",
    "--count": "--limit",
    "--tail": "--follow",
    "--format": "--json",
    "-o": "--json",
    "-k": "--kind",
    "-t": "--title",
    "-d": "--data",
    "-p": "--priority",
    "-w": "--worker",
    "-n": "--limit",
    "-j": "--concurrency",
    "-f": "--follow",
}


def verb(word: str) -> str:
    """Return the hint for an unknown verb."""
    return VERBS.get(word.lower().replace("_", "-"), "'taskyard help' lists the verbs")


def option(word: str, known: list[str]) -> str | None:
    """Return the option among `known` that means what this word means in other tools."""
    meant = OPTIONS.get(word.lower().replace("_", "-"))
    return meant if meant in known else None
