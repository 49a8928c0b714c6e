"""`top`: the yard at a glance, live: who works on what, how far missions are, and what waits for a person."""

from __future__ import annotations

from taskyard.doors.cli import output
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from taskyard.port import YardPort

_LEAST = 1.0  # seconds between two looks at the yard,
_SHARE = 20  # and this many times as long as the last one took: 5 % of a core however large the yard is
_COUNTED: tuple[str, ...] = ("todo", "waiting", "blocked", "processing", "done", "failed")
_MISSIONS_MOST = 8
_FAILED_MOST = 5
_NAME_MOST = 16
_PRINTED = 120  # columns where there is no screen
_SORTS = {
    "reviews": "to review",
    "file_conflicts": "edited in a file and in the yard",
    "conflicts": "brought too late",
    "failed": "failed for good",
    "stuck": "dead, with others behind",
    "unserved": "kinds that no worker serves",
    "paused": "paused",
    "set_aside": "files set aside",
}


def top(call: Call) -> Reply | int:
    """Show the yard until Ctrl-C; without a terminal, or with --once, print it once."""
    yard = call.yard
    if call.as_json or call.given.flag("once") or not _on_screen():
        found = gathered(yard)
        return Reply(found, lambda: "\n".join(lines(found, yard.label, _PRINTED)))
    return _shown(yard)


def _on_screen() -> bool:
    from taskyard.doors.cli.verbs.running.crew import has_a_screen

    return has_a_screen()


def gathered(yard: YardPort) -> dict[str, Any]:
    """Return what the screen shows: what waits for a person, counts and rates, workers, and missions."""
    return {"overview": yard.overview(), "agents": yard.agents()["agents"], "missions": yard.missions()}


def lines(found: dict[str, Any], label: str, width: int) -> list[str]:
    """Return the whole picture, a line for each worker's task, mission and failure."""
    overview = found["overview"]
    return [
        *_head(overview, label, width),
        *_attention(overview, width),
        "",
        *_workers(found["agents"], width),
        *_missions(found["missions"], width),
        *_failures(overview["needs"]["failed"], width),
    ]


def _head(overview: dict[str, Any], label: str, width: int) -> list[str]:
    counts, rates = overview["counts"], overview["rates"]
    rate = f"{rates['minute']['done']}/min, {rates['hour']['done']}/hour"
    names = _COUNTED
    if len(output.GAP.join((*(f"{name} {counts[name]}" for name in names), rate))) > width:
        names = tuple(name for name in names if counts[name])  # what there is none of is left out first
    cells = (output.paint(f"{name} {counts[name]}", name) if counts[name] else f"{name} 0" for name in names)
    return [
        output.paint(output.cut(output.plain(f"taskyard top  {label}"), width), "heading"),
        output.GAP.join((*cells, rate)),
    ]


def _attention(overview: dict[str, Any], width: int) -> list[str]:
    """Return one line of what waits for a person, and one of what is paused."""
    sorts = [f"{part['count']} {_SORTS[name]}" for name, part in overview["needs"].items() if part["count"]]
    pauses = [entry["kind"] or "the whole yard" for entry in overview["needs"]["paused"]["entries"]]
    found = []
    if sorts:
        found.append(output.paint(output.cut(f"needs you: {', '.join(sorts)}", width), "error"))
    if pauses:
        found.append(output.paint(output.cut(output.plain(f"paused: {', '.join(pauses)}"), width), "error"))
    return found


def _workers(agents: list[dict[str, Any]], width: int) -> list[str]:
    """Return the table of workers: those with a task first, a line for each task."""
    if not agents:
        return ["no worker has done anything in the last hour"]
    from taskyard.doors.cli.verbs.running.crew.view import clock

    names = max(6, *(min(output.width(output.plain(agent["worker"])), _NAME_MOST) for agent in agents))
    found = [output.paint(f"{'WORKER':{names}}  {'FOR':>5} {'BEAT':>5} {'DONE/H':>6} {'FAIL':>4}  TASK", "heading")]
    for agent in sorted(agents, key=lambda agent: (not agent["tasks"], agent["worker"])):
        name = output.cut(output.plain(agent["worker"]), names)
        padded = name + " " * (names - output.width(name))
        figures = f"{agent['hour']['done']:>6} {agent['hour']['failed']:>4}"
        for number, task in enumerate(agent["tasks"]):
            held, beat = (_ago(task[field], clock) for field in ("since", "heartbeat_at"))
            start = f"{padded if number == 0 else ' ' * names}  {held:>5} {beat:>5} {figures if number == 0 else ' ' * 11}  "
            found.append(start + output.cut(_task(task), max(8, width - len(start))))
        if not agent["tasks"]:
            idle = output.paint("idle", "noted")
            found.append(f"{padded}  {'':>5} {_ago(agent['last_at'], clock):>5} {figures}  {idle}")
    return found


def _ago(at: str | None, clock: Any) -> str:
    import time

    from taskyard.doors.cli import ages

    return "" if at is None else clock(time.time() - ages.milliseconds(at) / 1000)


def _task(task: dict[str, Any]) -> str:
    share = None if task["progress"] is None else f"{task['progress']:.0%}"
    return output.plain(" ".join(filter(None, (task["short"], task["kind"], share, task["title"])))).replace("\n", " ")


def _missions(missions: list[dict[str, Any]], width: int) -> list[str]:
    """Return the missions that are under way, each with how far it is."""
    open_ones = [mission for mission in missions if mission["state"] in ("open", "running")]
    if not open_ones:
        return []
    found = ["", output.paint("MISSIONS", "heading")]
    for mission in open_ones[:_MISSIONS_MOST]:
        counts = mission["counts"]
        share = f"{counts['done']} of {mission['total'] - counts['cancelled']}"
        more = [
            f"{counts[state]} {word}"
            for state, word in (("processing", "running"), ("failed", "failed"))
            if counts[state]
        ]
        found.append(output.cut(f"{share:>12}  {output.plain(mission['name'])}  {', '.join(more)}".rstrip(), width))
    if len(open_ones) > _MISSIONS_MOST:
        found.append(f"... and {len(open_ones) - _MISSIONS_MOST} more")
    return found


def _failures(failed: dict[str, Any], width: int) -> list[str]:
    if not failed["count"]:
        return []
    found = ["", output.paint(f"FAILED FOR GOOD, {failed['count']} IN ALL", "heading")]
    for task in failed["entries"][:_FAILED_MOST]:
        text = output.plain(f"{task['short']} {task['kind']} {task['title'] or ''}  {task['error'] or ''}")
        found.append(output.cut(" ".join(text.split()), width))
    return found


class TopView:
    """The picture for a screen of any size."""

    def __init__(self, label: str) -> None:
        self._label = label
        self.found: dict[str, Any] | None = None
        self.trouble: str | None = None

    def keep(self, _: object) -> None:
        """Do nothing: every picture is whole."""

    def frame(self, _: Iterable[Any], footer: str, size: tuple[int, int], __: float) -> list[str]:
        """Return the whole screen, exactly as many lines as it has, none of them too wide for it."""
        from taskyard.doors.cli.verbs.running.crew.view import fitted

        width, height = size[0] - 1, size[1]  # the last column stays empty: writing there may begin a new line
        away = (
            []
            if self.trouble is None
            else [output.paint(output.cut(f"the yard is away: {self.trouble}", width), "failed")]
        )
        text = [*away, *(lines(self.found, self._label, width) if self.found is not None else ["looking ..."])]
        if len(text) > height - 1:
            text = [*text[: height - 2], f"... and {len(text) - height + 2} more lines"]
        whole = [*text, *[""] * (height - 1 - len(text)), output.paint(output.cut(footer, width), "noted")]
        return [fitted(line, width) for line in whole]


def _shown(yard: YardPort) -> int:
    """Draw until `q` or Ctrl-C."""
    import time

    from taskyard.core.errors import TaskyardError
    from taskyard.doors.cli.verbs.running.crew.screen import Screen

    view = TopView(yard.label)
    screen = Screen(view)
    try:
        while True:
            began = time.monotonic()
            try:
                view.found, view.trouble = gathered(yard), None
            except TaskyardError as error:
                view.trouble = error.message
            took = time.monotonic() - began
            screen.draw("q or Ctrl-C ends it", time.monotonic())
            if _pressed_q(max(_LEAST, took * _SHARE)):
                return 0
    except KeyboardInterrupt:
        return 0
    finally:
        screen.close()


def _pressed_q(seconds: float) -> bool:
    """Wait for so long; return whether somebody pressed `q` meanwhile."""
    import os
    import select
    import sys
    import time

    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            ready = select.select([sys.stdin], [], [], left)[0]
            if ready and os.read(sys.stdin.fileno(), 100).lower().startswith((b"q", b"\x03")):
                return True
        except (OSError, ValueError):
            time.sleep(left)
        else:
            if ready and not sys.stdin.isatty():
                time.sleep(max(0.0, end - time.monotonic()))  # the end of a file is always ready
    return False


COMMANDS = {
    "top": Command(
        top,
        "Show the yard at a glance, live: counts and rates, what needs a person, who works on what with the age of the last heartbeat, how far missions are, and what failed for good. q or Ctrl-C ends it. "
        "Where there is no terminal it is printed once. The board of 'taskyard serve' shows more, in a browser.",
        (
            ("taskyard top", "until q or Ctrl-C"),
            ("taskyard top --once", "print it once, also on a terminal"),
            ("taskyard --json top", "the same as JSON: overview, agents, missions"),
        ),
        options=(Option("--once", None, "print it once, also on a terminal"),),
        lasts=True,
    ),
}
