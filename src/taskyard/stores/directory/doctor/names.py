"""Check names: whether case counts, whether letters stay as they are, and how long a name can be."""

from __future__ import annotations

import errno
import os

from taskyard.core.diagnosis import Finding, green, refuse, warn
from taskyard.stores.directory.doctor.inspection import ELSEWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.doctor.directory import ProbeFolder

LONGEST = 254  # bytes of the longest name that a yard makes; PROTOCOL.md adds them up
_SHORTEST = 128  # bytes that the name of a claim takes with a kind and a worker of ordinary length
_COMPOSED, _DECOMPOSED = "caf\u00e9", "cafe\u0301"


def case(probes: ProbeFolder) -> Finding:
    """Check that names that differ only in case are two names."""
    folder = probes.folder("case")
    given = "0-Build@Ada"
    os.close(os.open(os.path.join(folder, given), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    listed = os.listdir(folder)
    folds = os.path.lexists(os.path.join(folder, given.lower()))
    measured = {"folds_case": folds, "keeps_case": listed == [given]}
    if listed != [given]:
        reason = f"a file that was called {given} is listed as {', '.join(map(ascii, listed)) or 'nothing'}"
        return refuse("case", f"{reason}: tasks would not be found again", ELSEWHERE, **measured)
    if folds:
        # Ids, nonces and bodies are in lower case; users choose kinds and assignees, which are names of folders.
        return warn(
            "case",
            "names that differ only in case are one name here: such kinds, or assignees, would get each other's tasks",
            "do not use kinds, or names of workers, side by side that differ only in case",
            **measured,
        )
    return green("case", "upper and lower case make different names", **measured)


def letters(probes: ProbeFolder) -> Finding:
    """Check that names beyond ASCII are listed as they were given; only dropped files have such names."""
    folder = probes.folder("letters")
    measured = {"normalises": False}
    for name in (_COMPOSED, _DECOMPOSED):
        try:
            descriptor = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            reason = f"a name beyond ASCII is refused: {error.strerror}"
            return warn("letters", reason, "give the files that you drop into todo/ plain names", **measured)
        os.close(descriptor)
    if sorted(os.listdir(folder)) != sorted((_COMPOSED, _DECOMPOSED)):
        return warn(
            "letters",
            "names beyond ASCII are changed (Unicode normalisation): of two dropped files one may replace the other",
            "give the files that you drop into todo/ plain names; the yard's own are ASCII",
            **(measured | {"normalises": True}),
        )
    return green("letters", "names beyond ASCII come back as they were given", **measured)


def length(probes: ProbeFolder) -> Finding:
    """Check that names can be as long as the longest of a yard."""
    folder = probes.folder("length")
    if _fits(folder, LONGEST):
        return green("length", f"names of {LONGEST} bytes, the longest of a yard, are taken", longest=LONGEST)
    least, most = 1, LONGEST
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if _fits(folder, middle) else (least, middle)
    reason = f"names of more than {least} bytes are refused, and a yard's have up to {LONGEST}"
    if least < _SHORTEST:
        return refuse("length", reason, ELSEWHERE, longest=least)
    # The other parts of a claim's name (id, numbers, lease, nonce) take about 100 bytes.
    return warn(
        "length",
        reason,
        f"keep kinds, assignees and names of workers within {(least - 100) // 2} bytes each",
        longest=least,
    )


def _fits(folder: str, count: int) -> bool:
    path = os.path.join(folder, "n" * count)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        if error.errno not in (errno.ENAMETOOLONG, errno.EINVAL):
            raise
        return False
    os.unlink(path)
    return True
