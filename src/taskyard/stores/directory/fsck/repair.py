"""Repair each finding by a safe move, or note why it is left to a person."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.errors import Invalid, TaskyardError
from taskyard.core.moves import Move
from taskyard.core.task import Handle, State
from taskyard.stores.directory.fsck.codes import CODES, DAMAGE
from taskyard.stores.directory.fsck.repair_moves import RepairMoves
from taskyard.stores.directory.names import Lane
from taskyard.stores.directory.tasks import task_file
from taskyard.stores.directory.tasks.locate import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.dropbox.rejected import Rejected
    from taskyard.stores.directory.fsck.findings import Suspect
    from taskyard.stores.directory.recovery.segments import SegmentRecovery
    from taskyard.stores.directory.tasks.add import Adder
    from taskyard.stores.directory.tasks.shifts import Shifts

_OPEN = (State.TODO, State.WAITING, State.BLOCKED)
_HELD = "a worker holds it; it is looked at again when it is given back"


class NotRepairable(Exception):
    """No safe repair exists; the message says why."""


class Repair:
    """Repairs one finding at a time; each is checked again before anything is done about it."""

    def __init__(
        self,
        context: Context,
        shifts: Shifts,
        adder: Adder,
        rejected: Rejected,
        segment_recovery: SegmentRecovery,
        by: str,
    ) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._edges = shifts.edges
        self._keys = adder.keys
        self._segment_recovery = segment_recovery
        self._by = by
        self._moves = RepairMoves(context, shifts, adder, rejected, by)
        self._repairs: dict[str, Callable[[Suspect], str | None]] = {
            "folder_missing": self._make_folder,
            "stray": self._set_aside,
            "symlink": self._set_aside,
            "not_a_file": self._set_aside,
            "name_illegal": self._rename,
            "misplaced": self._put_home,
            "lane_differs": self._change_lane,
            "two_files": self._set_copy_aside,
            "two_names": self._drop_twin,
            "broken": self._fail_broken,
            "id_differs": self._set_aside,
            "body_missing": self._fail_unedited,
            "body_broken": self._fail_unedited,
            "record_broken": self._set_record_aside,
            "reason_missing": self._give_reason,
            "record_ahead": self._raise_fence,
            "state_behind": self._catch_up,
            "log_differs": self._catch_up,
            "unlogged_ending": self._log,
            "key_missing": self._link_key,
            "key_copied": self._link_key,
            "key_without_task": self._bring_back,
            "key_broken": self._set_aside,
            "need_open": self._block,
            "need_missing": self._note_need,
            "edge_half": self._complete_edge,
            "need_met": self._unblock,
            "need_failed": self._unblock,
            "bucket_late": self._rebucket,
            "marker_missing": self._mark,
            "marker_broken": self._mark,
            "marker_lane": self._mark,
        }

    def run(self, suspect: Suspect) -> None:
        """Repair this finding if that is safe, and note in it what was done, or why nothing was."""
        repair = self._repairs.get(suspect.code)
        if repair is None:
            if suspect.severity == DAMAGE:
                suspect.left_because = CODES[suspect.code].by_hand
            return
        try:
            if suspect.still_holds():
                suspect.did = repair(suspect)
                suspect.repaired = suspect.did is not None
        except NotRepairable as why:
            suspect.left_because = str(why)
        except (OSError, TaskyardError) as error:
            suspect.left_because = f"it could not be healed: {getattr(error, 'strerror', None) or error}"

    # The task of a finding

    def _found(self, suspect: Suspect) -> Found:
        """Return the task under the finding's own path."""
        state = State(suspect.folder.removeprefix(self._root + "/").split("/", 1)[0])
        token = suspect.token
        if token is None or not self._disk.exists(suspect.path):
            raise NotRepairable("it has moved on; run fsck again")
        return Found(state, (suspect.folder, suspect.name), token)

    def _task(self, suspect: Suspect) -> Found:
        """Return the task of a record or a key, wherever it is."""
        return self._context.locator.find(suspect.task or "")

    # Folders and files

    def _make_folder(self, suspect: Suspect) -> str:
        self._context.mover.ensure(suspect.path)
        return "made"

    def _set_aside(self, suspect: Suspect) -> str | None:
        fence = max(suspect.logged_fence, suspect.token.fence if suspect.token is not None else 0) + 1
        alone = suspect.task is not None and suspect.code != "key_broken" and self._is_alone(suspect)
        task = suspect.task if alone else None
        return self._moves.set_aside(suspect.path, suspect.what, task, fence if alone else 0)

    def _is_alone(self, suspect: Suspect) -> bool:
        """Return whether the task has no other file."""
        found = self._context.locator.matching(suspect.task or "").get(suspect.task or "")
        return found is None or found.path == suspect.path

    def _set_copy_aside(self, suspect: Suspect) -> str | None:
        return self._moves.set_aside(suspect.path, f"a copy of task {suspect.task}, which is {suspect.what}")

    def _drop_twin(self, suspect: Suspect) -> str | None:
        return "its second name is gone" if self._segment_recovery.twins((suspect.task or "")[: ids.SEGMENT]) else None

    # Tasks

    def _rename(self, suspect: Suspect) -> str | None:
        found = self._found(suspect)
        if found.state is State.PROCESSING:
            return self._moves.shift(found, State.TODO, suspect.logged_fence, "released", suspect.what)
        if found.state not in _OPEN:
            raise NotRepairable(CODES[suspect.code].by_hand)
        return self._moves.shift(found, found.state, suspect.logged_fence, "edited", suspect.what)

    def _put_home(self, suspect: Suspect) -> str | None:
        found = self._found(suspect)
        if self._context.locator.knows(found.token.id):
            return self._set_copy_aside(suspect)
        if found.state in _OPEN:
            return self._moves.shift(found, found.state, suspect.logged_fence, "edited", suspect.what)
        if found.state is State.PROCESSING:
            raise NotRepairable(_HELD)
        return self._moves.put_home(found)

    def _change_lane(self, suspect: Suspect) -> str | None:
        found = self._found(suspect)
        if found.state not in _OPEN:
            raise NotRepairable(_HELD)
        draft = task_file.draft(self._context.edits.read(*found.place))
        lane = Lane.of(draft.priority, draft.kind, draft.assignee, draft.mission)
        return self._moves.shift(found, found.state, suspect.logged_fence, "edited", suspect.what, lane)

    def _fail_broken(self, suspect: Suspect) -> str | None:
        found = self._found(suspect)
        if found.state is State.DONE:
            raise NotRepairable(CODES[suspect.code].by_hand)
        if found.token.dropped and found.state in (*_OPEN, State.PROCESSING):
            return self._moves.back_to_the_box(found, suspect.what)
        return self._moves.fail(found, suspect.logged_fence, f"its file is broken: {suspect.what}")

    def _fail_unedited(self, suspect: Suspect) -> str | None:
        found = self._found(suspect)
        if found.state is State.DONE:
            raise NotRepairable("it is done, and what it said is lost; its ending and its result stand")
        edit = self._context.edits.path(found.token.id, found.token.body or "")
        did = self._moves.fail(found, suspect.logged_fence, suspect.what, edited=False)
        if did is not None and suspect.code == "body_broken":
            rejected = self._moves.set_aside(edit, f"a broken edit of task {suspect.task}")
            did += f"; its edit: {rejected}"
        return did

    def _raise_fence(self, suspect: Suspect) -> str | None:
        found = self._task(suspect)
        if found.state not in _OPEN:
            raise NotRepairable(_HELD if found.state is State.PROCESSING else CODES[suspect.code].by_hand)
        return self._moves.shift(found, found.state, suspect.logged_fence, "edited", f"a record was {suspect.what}")

    def _catch_up(self, suspect: Suspect) -> str | None:
        """Raise the fence above the log's, so that none is used twice; fail the task if it has ended by the log."""
        found = self._found(suspect)
        if found.state.ended:
            raise NotRepairable("it has ended here and goes on in the log; " + CODES[suspect.code].by_hand)
        if suspect.logged_ended:
            return self._moves.fail(found, suspect.logged_fence, suspect.what)
        if found.state is State.PROCESSING:
            return self._moves.shift(found, State.TODO, suspect.logged_fence, "released", suspect.what)
        return self._moves.shift(found, found.state, suspect.logged_fence, "edited", suspect.what)

    def _block(self, suspect: Suspect) -> str | None:
        found = self._found(suspect)
        if found.state not in (State.TODO, State.WAITING):
            raise NotRepairable("it is not in todo or waiting; " + CODES[suspect.code].by_hand)
        return self._moves.shift(found, State.BLOCKED, suspect.logged_fence, "edited", suspect.what)

    def _rebucket(self, suspect: Suspect) -> str | None:
        return self._moves.shift(self._found(suspect), State.WAITING, suspect.logged_fence, "edited", suspect.what)

    # Records and log

    def _set_record_aside(self, suspect: Suspect) -> str | None:
        id = suspect.name.split(".", 1)[0]
        found = self._context.locator.matching(id).get(id)
        if (
            found is not None
            and found.state is State.DONE
            and found.token.has_result
            and suspect.name == f"{id}.{found.token.fence}.{found.token.nonce}.done.json"
        ):
            raise NotRepairable("it is the result of a done task, and no other file has it; restore it from a backup")
        return self._moves.set_aside(suspect.path, f"a record that is {suspect.what}")

    def _give_reason(self, suspect: Suspect) -> str | None:
        found = self._found(suspect)
        reason = "the record of why it failed was missing"
        if found.token.nonce is None:
            return self._moves.fail(found, suspect.logged_fence, reason)
        token = found.token
        standing = token.standing(State.PROCESSING, found.place, self._context.policy)
        move = Move("failed", State.FAILED, token.fence, token.errors, token.crashes, 0.0, "error", f"fsck: {reason}")
        handle = Handle(token.id, token.fence, token.nonce or "")
        self._context.records.write(handle, move, standing, self._by, self._context.clock.now(), self._context.durable)
        return "a record says so now"

    def _log(self, suspect: Suspect) -> str:
        found = self._found(suspect)
        handle = Handle(found.token.id, found.token.fence, found.token.nonce or "")
        records = self._context.records.all(found.token.id)
        reason = next(
            (record.get("reason") for claim, kind, record in records if (claim, kind) == (handle, "error")), None
        )
        return self._moves.log(found, reason)

    # Keys

    def _link_key(self, suspect: Suspect) -> str | None:
        found = self._found(suspect)
        key = str(task_file.decode(self._disk.read(found.path))["key"])
        did = ""
        if suspect.code == "key_copied":
            path = self._keys.path(key)
            did = f"{self._moves.set_aside(path, f'a copy of the file of task {suspect.task}')}; "
        return f"{did}linked" if self._keys.take(key, found.path, sync=self._context.durable) else None

    def _bring_back(self, suspect: Suspect) -> str | None:
        if suspect.logged_ended:
            return self._moves.set_aside(suspect.path, f"the key of task {suspect.task}, which has ended and is gone")
        try:
            return self._moves.bring_back(suspect.path, suspect.task or "", suspect.logged_fence)
        except Invalid as error:
            raise NotRepairable(f"its file cannot be a task: {error.message}") from None

    # Edges and segments

    def _note_need(self, suspect: Suspect) -> str:
        id = suspect.task or ""
        self._edges.note(id, suspect.name)
        self._edges.look_again(id, self._by)  # the other may have been done meanwhile
        return "noted"

    def _complete_edge(self, suspect: Suspect) -> str:
        other = suspect.folder.rpartition("/")[2]
        self._edges.tie(suspect.name, other)
        self._edges.look_again(suspect.name, self._by)  # the other may have been done meanwhile
        return "made"

    def _unblock(self, suspect: Suspect) -> str | None:
        state = self._edges.look_again(suspect.task or "", self._by).get(suspect.task or "")
        return None if state is None else "cancelled" if state is State.CANCELLED else "let go"

    def _mark(self, suspect: Suspect) -> str | None:
        did = ""
        if suspect.code != "marker_missing":
            did = f"{self._moves.set_aside(suspect.path, suspect.what, stem=f'segment-{suspect.name}')}; "
        made = self._moves.mark(suspect.name)
        return f"{did}{made or 'no tasks, no marker'}" if did or made else None
