"""`fsck`: check that every task is in exactly one legal state, and repair what is not."""

from __future__ import annotations

import sys

from taskyard.core import draft
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_SHOWN_MOST = 1_000_000
_SHOWN = 10  # findings of one kind that the text shows; the JSON has all
_STATES = ("todo", "waiting", "blocked", "processing", "done", "failed", "cancelled")


def fsck(call: Call) -> Reply:
    """Check the whole yard, and with --repair repair what can be repaired safely."""
    most = call.given.integer("show")
    if most is not None:
        draft.integer(most, "--show", 0, _SHOWN_MOST)
    progress = None if call.as_json or not _is_terminal() else _Progress()
    repair = call.given.flag("repair")
    report = call.open_to_audit().audit(repair, progress)
    if progress is not None:
        progress.end()
    return Reply(
        report,
        lambda: _page(report, repair, _SHOWN if most is None else most),
        1 if report["verdict"] == "damaged" else 0,
    )


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


class _Progress:
    """A progress line on the terminal, which is erased at the end."""

    def __call__(self, words: str) -> None:
        sys.stderr.write(f"\r\x1b[K{words[:76]}")
        sys.stderr.flush()

    def end(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _page(report: dict[str, Any], repair: bool, most: int) -> str:
    return "\n".join((*_lines(report["findings"], report["counts"], most), _summary(report, repair)))


def _lines(findings: list[dict[str, Any]], counts: dict[str, int], most: int) -> Iterator[str]:
    from taskyard.doors.cli import output

    for code, number in counts.items():
        some = [entry for entry in findings if entry["code"] == code]
        yield output.paint(f"{code} ({some[0]['class']}): {number}" if some else f"{code}: {number}", "heading")
        for entry in some[:most]:
            task = f" task {entry['task']}" if entry["task"] and entry["task"] not in entry["where"] else ""
            yield f"  {output.plain(entry['where'])}{task}: {output.plain(entry['what'])}"
            if entry["did"]:
                yield f"    {'repaired' if entry['repaired'] else 'tried'}: {output.plain(entry['did'])}"
            elif entry["repaired"]:
                yield "    repaired"
        if number > most:
            yield f"  and {number - min(most, len(some))} more (--json has them)"
        left = next((entry for entry in some if not entry["repaired"] and entry["hint"] != "nothing"), None)
        if left is not None:
            yield f"  -> {output.plain(left['hint'])}"


def _summary(report: dict[str, Any], repair: bool) -> str:
    checked = report["checked"]
    number = checked["tasks"]
    states = ", ".join(f"{checked[state]:,} {state}" for state in _STATES if checked.get(state))
    looked = f"{number:,} task{'s'[: number != 1]} in {checked['seconds']:.1f} s" + (f" ({states})" if states else "")
    damage = sum(1 for entry in report["findings"] if entry["class"] == "damage" and not entry["repaired"])
    pending = sum(1 for entry in report["findings"] if entry["class"] == "pending" and not entry["repaired"])
    healed = sum(1 for entry in report["findings"] if entry["repaired"])
    words = [report["verdict"]]
    if damage:
        words.append(
            f"{damage} left to a person" if repair else f"{damage} found; 'taskyard fsck --repair' heals what can be"
        )
    if healed:
        words.append(f"{healed} healed")
    if pending:
        words.append(f"{pending} that the next sweep sees to")
    return f"{', '.join(words)}; {looked}"


COMMANDS = {
    "fsck": Command(
        fsck,
        "Prove that every task is in exactly one legal state: every name parses, every done has its result, the log and the states "
        "agree, keys, edits, records and dependencies are whole. It can run beside workers, and raises no alarm for a move that is only "
        "under way. Exit 0 if all is well, 1 if something is damaged; what the next sweep sees to by itself is reported and is no damage. "
        "With --repair it heals what can be healed without loss, by moves that remove nothing, says what it did and what it left to a "
        "person, and looks again. docs/fsck.md tells what each finding means.",
        (
            ("taskyard fsck", "is every task in one legal state?"),
            ("taskyard fsck --repair", "heal what can be healed, and tell what cannot"),
            ("taskyard fsck --json", "every finding, for a program"),
        ),
        options=(
            Option("--repair", None, "heal what can be healed without loss"),
            Option("--show", "N", f"how many findings of each kind are shown ({_SHOWN})"),
        ),
    ),
}
