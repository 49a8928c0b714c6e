"""Run one command under a claim that somebody else made: only while it holds, with heartbeats beside it."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

from taskyard.core import ids
from taskyard.core.errors import ClaimLost, Invalid, TaskyardError
from taskyard.worker.command import environment
from taskyard.worker.guard_client import GuardClient, GuardLost, stop_strays
from taskyard.worker.heartbeats import STOP_GRACE, Heartbeats, has_ended

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from taskyard.worker.guard_client import Ended
    from taskyard.yard.claim import Claim

# Marks the processes of one run. The claim would not do: the program that runs this may itself be the command of the claim's worker.
_MARK = "TASKYARD_GUARD"


def run(claim: Claim, argv: Sequence[str], grace: float, stdout: int | None = None) -> int:
    """Run the command while the claim holds and return its exit code; raise `ClaimLost` if it was stopped, or never begun."""
    claim.heartbeat()
    guarded = GuardClient(None, foreground=True, stdout=stdout)
    watched = _Watched(claim, guarded)
    mark = ids.base32(ids.chance(60), 12)
    try:
        task = claim.task
        guarded.begin(
            argv,
            environment={**environment(claim, task.worker, claim.workdir_path), _MARK: mark},
            grace=grace,
            patience=claim.lease / 2,
        )
        with watched:
            ended = guarded.end()
    except GuardLost:
        stop_strays(_MARK, mark)
        raise Invalid("the guard of the command was killed, and so the command was too") from None
    finally:
        guarded.close()
    return _code(claim, ended, watched.lost)


class _Watched:
    """Heartbeats beside the command, and the signals that stop it, while it runs."""

    def __init__(self, claim: Claim, guarded: GuardClient) -> None:
        self.lost = False
        self._claim = claim
        self._guarded = guarded
        self._beats = Heartbeats(lambda _: claim, lambda _: self._lose())
        self._beats.add(claim.handle, claim.lease)
        self._thread = threading.Thread(target=self._beats.run, name="heartbeats", daemon=True)

    def _lose(self) -> None:
        """Stop the command, unless it has ended the task itself and is only finishing."""
        try:
            if has_ended(self._claim):
                return
        except TaskyardError:
            pass  # a claim that cannot be looked up is not ours any more
        self.lost = True
        self._guarded.stop(STOP_GRACE)

    def _signalled(self, number: int, _: FrameType | None) -> None:
        # Ctrl-C reaches the command from the terminal: said twice, it would mean more than once.
        if number != signal.SIGINT:
            self._guarded.stop(STOP_GRACE)

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._before = {
                number: signal.signal(number, self._signalled)
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            }
        else:
            self._before = {}
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._beats.stop()
        self._thread.join()
        for number, before in self._before.items():
            signal.signal(number, before)


def _code(claim: Claim, ended: Ended, lost: bool) -> int:
    if ended.error is not None:
        raise Invalid(f"the command cannot be started: {ended.error}", hint="check its spelling, its path and its mode")
    if lost:
        raise ClaimLost(f"the claim {claim.handle} was lost while the command ran; the command was stopped")
    if ended.deserted:
        raise ClaimLost(
            f"the command was stopped: its guard stood still for half a lease, so {claim.handle} could be lost any moment"
        )
    return ended.code if ended.code >= 0 else 128 - ended.code
