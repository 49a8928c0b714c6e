"""`doctor`: check whether a directory is safe for a yard."""

from __future__ import annotations

from taskyard import opening
from taskyard.core.diagnosis import Verdict
from taskyard.core.errors import Invalid, NoYard
from taskyard.core.signals import Interrupted, Stopping
from taskyard.doors.cli import output
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.core.diagnosis import Diagnosis, Finding

PROCESSES, WAIT = 4, 60.0
_MOST = 64
_MARGIN = 4  # columns that stay free on the right
_CLOSING = {
    Verdict.GREEN: "safe: tasks can be handed out here",
    Verdict.WARN: "usable: tasks are safe here, if what is said above is minded",
    Verdict.REFUSE: "not safe, or not shown to be: see what is refused above",
}


def doctor(call: Call) -> Reply:
    """Run the checks, and return their findings."""
    given = call.given
    processes = given.integer("processes")
    if processes is None:
        processes = PROCESSES
    if not 2 <= processes <= _MOST:
        raise Invalid(f"--processes must be 2 to {_MOST}, not {processes}")
    wait = given.seconds("wait")
    if wait is not None and not given.flag("peer"):
        raise Invalid("--wait is how long to wait for a peer", hint="say --peer as well")
    place = given.word(0)
    try:
        with Stopping(_leave):
            diagnosis = opening.examine(
                given.text("yard") if place is None else place,
                processes=processes,
                wait=(WAIT if wait is None else wait) if given.flag("peer") else None,
                tell=remark,
            )
    except NoYard as error:
        hint = "name the directory that a yard is in, or is to be made in: taskyard doctor PATH"
        raise NoYard(error.message, hint=hint) from None
    return Reply(diagnosis.as_dict(), lambda: _page(diagnosis), 1 if diagnosis.verdict is Verdict.REFUSE else 0)


def _leave(number: int) -> None:
    """Raise an exception on a signal, so that the examination removes its probes before it ends."""
    raise Interrupted(number, "the place was not examined to the end; the probes are removed")


def _page(diagnosis: Diagnosis) -> str:
    wide = max(len(finding.check) for finding in diagnosis.findings)
    lines = [output.paint(output.plain(diagnosis.place), "heading"), ""]
    for finding in diagnosis.findings:
        lines += _lines(finding, wide)
    verdict = diagnosis.verdict
    return "\n".join((*lines, "", f"{output.paint(verdict.upper(), verdict)}  {_CLOSING[verdict]}"))


def _lines(finding: Finding, wide: int) -> list[str]:
    """Return the finding on one line; on more if it is not green, or if the screen is narrow."""
    mark = output.paint(finding.verdict.ljust(len(Verdict.REFUSE)), finding.verdict)
    indent = len(Verdict.REFUSE) + wide + 2 * len(output.GAP)
    reason = _wrapped(finding.reason, indent)
    lines = [f"{mark}{output.GAP}{finding.check.ljust(wide)}{output.GAP}{reason[0]}"]
    lines += [" " * indent + line for line in reason[1:]]
    if finding.hint:
        lines += [" " * indent + line for line in _wrapped(f"-> {finding.hint}", indent)]
    return lines


def _wrapped(text: str, indent: int) -> list[str]:
    from textwrap import wrap

    text, room = output.plain(text).replace("\n", " "), output.columns()
    if room is None:
        return [text]
    return wrap(text, max(room - indent - _MARGIN, 20), break_on_hyphens=False) or [""]


COMMANDS = {
    "doctor": Command(
        doctor,
        "Tell whether a place is safe for a yard: by what its filesystem is, and by trying what a yard needs of it, with several processes at "
        "once. The place is PATH, else the yard that is meant; a directory without a yard is examined as a place for one. Nothing of a yard is "
        "changed, and workers may go on meanwhile. Each check is green, warn or refuse, with the reason and a way out. Exit 0 for green or "
        "warn, 1 if one of them is refuse. --peer also tries what two machines see of each other: run it on both at the same time.",
        (
            ("taskyard doctor", "the yard that is meant from here"),
            ("taskyard doctor /shared/crew", "a yard, or a directory in which one is to be made"),
            ("taskyard doctor /shared/crew --peer --wait 10m", "on two machines that share it, within ten minutes"),
        ),
        words="[PATH]",
        most=1,
        options=(
            Option(
                "--peer", None, "meet a second doctor with --peer, on another machine, and examine the place together"
            ),
            Option("--wait", "S", f"wait so long for the other doctor (default {WAIT:g}; 30, 10m, 2h)"),
            Option("--processes", "N", f"how many processes race on this machine, 2 to {_MOST} (default {PROCESSES})"),
        ),
    ),
}
