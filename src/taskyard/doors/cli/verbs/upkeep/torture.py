"""`torture`: test on this machine that no task is lost and none is done twice."""

from __future__ import annotations

import time

from taskyard.core import draft
from taskyard.core.errors import Invalid, Unavailable
from taskyard.doors.cli import replies
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.proof.torture.run import TortureRun

WORKERS, SECONDS = 4, 10.0
_WORKERS_MOST = 256
_TASKS_MOST = 1_000_000
_SECONDS_MOST = 86_400.0
_SEED_MOST = 10**15 - 1
_SHOWN = 20  # violations that the text shows
_TOLD = 1000  # violations in the JSON; the history has them all
_EVERY = 5.0  # seconds between two lines of progress if stderr is no terminal


def torture(call: Call) -> Reply:
    """Run every verb from real processes in a scratch yard, kill and stop them, and check the recorded answers."""
    given = call.given
    workers = _number(given.integer("workers"), "--workers", 1, _WORKERS_MOST, WORKERS)
    tasks = None if given.text("tasks") is None else _number(given.integer("tasks"), "--tasks", 1, _TASKS_MOST, 0)
    seconds = given.seconds("seconds", least=0.1)
    if seconds is None:
        seconds = SECONDS if tasks is None else _SECONDS_MOST
    if seconds > _SECONDS_MOST:
        raise Invalid(f"--seconds must be at most {_SECONDS_MOST:g}", hint="a day is the longest")
    seed = given.integer("seed")
    seed = _seed() if seed is None else _number(seed, "--seed", 0, _SEED_MOST, 0)
    from taskyard.proof.torture.run import TortureRun

    ordeal = TortureRun(given.text("yard"), workers, tasks, seconds, seed)
    return _reply(_run(ordeal, call.as_json))


def _number(value: int | None, name: str, least: int, most: int, default: int) -> int:
    return default if value is None else draft.integer(value, name, least, most)


def _seed() -> int:
    from taskyard.core import ids

    return ids.chance(32)


def _run(ordeal: TortureRun, as_json: bool) -> dict[str, Any]:
    """Run the torture to its end, or to the first Ctrl-C; the history until then is checked too."""
    from taskyard.core.signals import Stopping

    asked = 0

    def interrupt(_: int) -> None:
        nonlocal asked
        asked += 1
        ordeal.interrupted = True
        if asked == 2:  # the run ends all its processes, without a verdict; a third Ctrl-C must not interrupt that
            raise KeyboardInterrupt

    progress = _Progress(ordeal, as_json)
    try:
        with Stopping(interrupt):
            return ordeal.run(progress)
    except (OSError, Unavailable) as error:  # an error of the run itself, or of the yard, whose hint is kept
        advice = f"{error.hint}; " if isinstance(error, Unavailable) and error.hint else ""
        raise Unavailable(f"the torture broke off: {error}", hint=f"{advice}{_kept(ordeal)}") from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_kept(ordeal)) from None
    finally:
        progress.close()


def _kept(ordeal: TortureRun) -> str:
    return f"what there is of it is kept in {ordeal.scratch.folder}"


class _Progress:
    """A progress line on stderr: redrawn on a terminal, else printed every `_EVERY` seconds; none with --json."""

    def __init__(self, ordeal: TortureRun, as_json: bool) -> None:
        import sys

        self._ordeal = ordeal
        self._quiet = as_json or sys.stderr is None
        self._terminal = not self._quiet and sys.stderr.isatty()
        self._due = 0.0
        if not self._quiet:
            for name in ordeal.scratch.cleared:
                replies.remark(f"removed {name}: left by a torture that was killed")
            for name in ordeal.scratch.left:
                replies.remark(f"{name} was left by a torture that is dead, it seems: remove it if none runs there")
            replies.remark(
                f"{ordeal.plan.workers} workers in {ordeal.scratch.folder}, seed {ordeal.plan.seed}"
                + ("" if ordeal.library else "; clocks are right: libfaketime is not here")
            )

    def __call__(self) -> None:
        now = time.monotonic()
        if self._quiet or now < self._due:
            return
        self._due = now + (0.2 if self._terminal else _EVERY)
        self._write(f"\r{self._line(now)}\x1b[K" if self._terminal else f"{self._line(now)}\n")

    def _line(self, now: float) -> str:
        ordeal, counts = self._ordeal, self._ordeal.counts
        return (
            f"{now - ordeal.began:5.1f} s  {ordeal.phase}: {counts.operations:,} operations, {counts.added:,} tasks, {counts.done:,} done; "
            f"{ordeal.kills} kills, {ordeal.stops} stops, {counts.late} refused late"
        )

    def _write(self, text: str) -> None:
        import sys

        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            self._quiet = True  # the reader of stderr has gone; the run goes on to its verdict

    def close(self) -> None:
        """Keep the last line on the terminal."""
        if self._terminal and not self._quiet:
            self._write("\n")


def _reply(report: dict[str, Any]) -> Reply:
    violations = report["violations"]
    report["violations"], report["violations_found"] = violations[:_TOLD], len(violations)
    proven = report["legal"] and report["ended_by"] != "interrupted"
    return Reply(report, lambda: _text(report), 0 if proven else 1)


def _text(report: dict[str, Any]) -> str:
    from taskyard.doors.cli import output

    rows = [
        (f"{report['operations']:,}", f"operations by {report['workers']} workers in {report['seconds']:g} s, {report['unanswered']:,} without an answer"),
        (f"{report['tasks']:,}", f"tasks: {report['done']:,} done, {report['failed']:,} failed, {report['cancelled']:,} cancelled, {report['blocked']:,} blocked behind those"),
        (f"{report['claims']:,}", f"claims handed out, {report['executions']:,} executions, {report['resumes']:,} resumes"),
        (f"{report['kills']:,}", "kills survived (SIGKILL)" if report["legal"] else "kills (SIGKILL)"),
        (f"{report['stops']:,}", "stops past the lease (SIGSTOP, SIGCONT)"),
        (f"{report['refused_late']:,}", "late verbs refused"),
        *([] if report["skewed_clocks"] is None else [(f"{report['skewed_clocks']:,}", "processes with a wrong clock (libfaketime)")]),
        *([(f"{report['unavailable']:,}", "answers that the yard was unavailable")] if report["unavailable"] else []),
        (f"{report['published_twice']:,}", "published twice"),
        (f"{report['lost']:,}", "lost"),
    ]  # fmt: skip
    lines = [f"{number:>12}  {what}" for number, what in rows]
    for violation in report["violations"][:_SHOWN]:
        lines += ["", f"{violation['code']}: {violation['text']}", *(f"    {line}" for line in violation["lines"])]
    more = report["violations_found"] - _SHOWN
    lines += [f"... and {more} more"] if more > 0 else []
    lines += [output.plain(trouble) for trouble in report["troubles"]]
    return "\n".join([*lines, "", _verdict(report)])


def _verdict(report: dict[str, Any]) -> str:
    seed = f"seed {report['seed']}"
    if not report["legal"]:
        found = report["violations_found"]
        what = (
            f"{found} violation{'s' if found != 1 else ''} of the promise"
            if found
            else "it could not be carried through"
        )
        return f"NOT LEGAL: {what} ({seed}). The history is kept in {report['kept']}, the yard in {report['kept_yard']}"
    if report["ended_by"] == "interrupted":
        return f"interrupted: all of it was legal so far, which is no proof ({seed})"
    return f"legal: every answer, and the yard at the end, are as promised ({seed})"


COMMANDS: dict[str, Command] = {
    "torture": Command(
        torture,
        "Prove it here: real processes add, claim and end tasks in a scratch yard beside your own, on the same filesystem or in the same database, while they are killed, stopped past their lease, given one another's names and, where libfaketime is installed, wrong clocks. "
        "Each writes down what it asked for and what was answered; at the end all of that, and the yard, are checked against the promise. Your own yard is not touched. The scratch yard is removed when all is well, and kept when it is not. "
        "It ends at so many tasks or after so many seconds, whichever comes first, and then drains. Exit 0: all was legal; 1: it was not, or Ctrl-C came first (what was done until then is still judged). "
        "The same seed has the same plan of acts and faults; when the system lets whom go on stays its own affair.",
        (
            ("taskyard torture", "four workers for ten seconds, beside the yard that is meant here"),
            ("taskyard torture --workers 8 --seconds 60", "a longer one: kills in the hundreds"),
            ("taskyard torture --tasks 500 --seed 7 --json", "500 tasks, by a plan that can be repeated; the verdict as JSON"),
        ),
        options=(
            Option("--workers", "N", f"so many processes at a time, 1 to {_WORKERS_MOST} ({WORKERS})"),
            Option("--tasks", "M", f"end when so many tasks were added, 1 to {_TASKS_MOST}"),
            Option("--seconds", "S", f"end after so long ({SECONDS:g}; with --tasks a day)"),
            Option("--seed", "N", "the plan of acts and faults (drawn at random)"),
        ),
    ),
}  # fmt: skip
