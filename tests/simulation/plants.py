"""Broken variants of the real code, each as somebody might well have written it: the simulation must find every one.

Each takes a copy of the package and breaks one part of it; it says where the break shows (scene and mode), and which parts
of the promise may be what it breaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .package import Package

PLANTS: dict[str, Plant] = {}


class Plant:
    """One planted bug."""

    def __init__(self, breaks: Callable[[Package], None], scene: str, mode: str, kinds: tuple[str, ...]) -> None:
        self.breaks = breaks
        self.scene = scene
        self.mode = mode
        self.kinds = kinds


def plant(scene: str, mode: str, *kinds: str) -> Callable[[Callable[[Package], None]], Callable[[Package], None]]:
    """Planted here; shows in this scene and mode as one of these."""

    def put(breaks: Callable[[Package], None]) -> Callable[[Package], None]:
        PLANTS[breaks.__name__.replace("_", "-")] = Plant(breaks, scene, mode, kinds)
        return breaks

    return put


def _disk(package: Package) -> Any:
    return package.module("stores.directory.filesystem.disk").Disk


@plant("two-claimers", "plain", "two places", "lost", "two claims", "acknowledged")
def rename_is_copy_and_delete(package: Package) -> None:
    """As s3fs and a naive `shutil.move` do it."""

    def copied(path: str, target: str) -> None:
        disk = _disk(package)()
        content = disk.read(path)
        if disk.exists(target):
            disk.unlink(target)
        disk.create(target, content, sync=False)
        disk.unlink(path)

    _disk(package).rename = staticmethod(copied)


@plant("release-twice", "plain", "fence", "two claims", "late verb", "history")
def number_not_raised_at_release(package: Package) -> None:
    """The number is the attempt's, so why raise it when nothing was attempted?"""
    moves = package.module("core.moves")
    original = moves.released

    def released(*args: Any) -> Any:
        move = original(*args)
        move.fence -= 1
        return move

    moves.released = released


@plant("claim-sweep", "plain", "late verb", "too early")
def staleness_by_mtime_alone(package: Package) -> None:
    """A rename keeps the mtime: what was queued for long looks dead when it is claimed."""
    os = package.kernel.os
    _disk(package).stamp = lambda self, path: os.stat(path).st_mtime_ns // 1_000_000


@plant("two-claimers", "lost", "acknowledged", "stuck", "handed out")
def no_own_name_check(package: Package) -> None:
    """ENOENT is ENOENT: somebody else was first."""
    package.module("stores.directory.tasks.mover").Mover.was_mine = lambda *_: False


@plant("done-reap", "power", "result", "acknowledged", "lost")
def done_before_its_result_is_synced(package: Package) -> None:
    """The rename is what counts, and the result will be written soon enough."""
    records = package.module("stores.directory.tasks.records").Records
    original = records._publish

    def published(self: Any, id: str, name: str, record: Any, sync: bool) -> bool:
        return bool(original(self, id, name, record, False))

    records._publish = published


@plant("sweep-done", "plain", "lost")
def unlink_on_one_listing(package: Package) -> None:
    """Two names in what was just listed are one too many: the older goes."""
    patrol = package.module("stores.directory.recovery.segments").SegmentRecovery
    token = package.module("stores.directory.names").Token

    def twins(self: Any, segment: str) -> int:
        seen: dict[str, tuple[int, str]] = {}
        for folder, lane in self._folders(segment):
            for name in self._context.locator.names(folder):
                parsed = token.parse(name, lane) if name.startswith(segment) else None
                if parsed is not None and parsed.id in seen:
                    self._disk.remove(min(seen[parsed.id], (parsed.fence, f"{folder}/{name}"))[1])
                elif parsed is not None:
                    seen[parsed.id] = (parsed.fence, f"{folder}/{name}")
        return 0

    patrol.twins = twins


@plant("done-done", "plain", "replaced", "result")
def record_replaced_instead_of_created(package: Package) -> None:
    """Writing a file is writing a file."""

    def published(self: Any, draft: str, path: str) -> bool:
        self.rename(draft, path)
        return True

    _disk(package).publish = published


@plant("two-takers", "plain", "two claims")
def claim_keyed_on_the_workers_name(package: Package) -> None:
    """One worker, one name: who else could it be?"""
    yard = package.module("yard").Yard
    original = yard._identify

    def identify(self: Any) -> None:
        original(self)
        self._incarnation = "aaaaaaaa"

    yard._identify = identify
    package.module("stores.directory.tasks.mover").Mover.was_mine = lambda self, folder, name: (
        name in self._disk.listdir(folder)
    )


@plant("two-keys", "crash", "key", "stuck")
def key_written_before_its_task(package: Package) -> None:
    """First the key, so that nobody else takes it; then the task."""
    keys = package.module("stores.directory.tasks.keys").Keys

    def take(self: Any, key: str, written: str, *, sync: bool) -> bool:
        path = self.path(key)
        self._context.mover.ensure(path.rpartition("/")[0])
        try:
            self._disk.create(path, self._disk.read(written), sync=False)
        except FileExistsError:
            return False
        return True

    keys.take = take
    keys._bury = lambda *_: False


@plant("beat-reap", "stale", "late verb")
def heartbeat_without_a_look_at_the_list(package: Package) -> None:
    """The touch would fail if the name were gone."""
    claims = package.module("stores.directory.tasks.claims").Claims
    original = claims.renew

    def renew(self: Any, *args: Any) -> Any:
        self._context.local = True
        try:
            return original(self, *args)
        finally:
            self._context.local = False

    claims.renew = renew


@plant("beat-reap", "plain", "too early")
def reap_without_a_second_look(package: Package) -> None:
    """It was overdue a moment ago."""
    package.module("stores.directory.tasks.shifts").Shifts._is_over = lambda *_: True


@plant("expire-claim", "plain", "two places", "lost", "two claims", "fence")
def expired_by_a_copy(package: Package) -> None:
    """Its time is up, so it is written down as cancelled, and then removed."""
    deadlines = package.module("stores.directory.tasks.deadlines").Deadlines

    def cancel(self: Any, found: Any, now: int, by: str) -> bool | None:
        deadline = self.of(found)
        if deadline is None or deadline > now:
            return False
        folder, name = found.place
        target = f"{self._context.root}/cancelled/{found.token.id[:4]}"
        self._mover.ensure(target)
        self._disk.create(
            f"{target}/{found.token.id}.1.e0.c0.Y.{found.token.lane.text}.json",
            self._disk.read(f"{folder}/{name}"),
            False,
        )
        self._disk.remove(f"{folder}/{name}")
        return True

    deadlines.cancel = cancel


@plant("edit-claim", "plain", "two places", "fence", "lost")
def edit_onto_the_old_name(package: Package) -> None:
    """A new body is written where the old one was."""
    shifts = package.module("stores.directory.tasks.shifts").Shifts
    body = package.module("stores.directory.tasks.task_file")

    def rewrite(self: Any, standing: Any, draft: Any, move: Any, by: str) -> bool:
        path = "/".join(standing.place)
        if not self._disk.exists(path):
            return False
        fresh = self._context.draft()
        self._disk.create(fresh, body.encode(standing.id, draft, None), sync=False)
        self._disk.rename(fresh, path)
        return True

    shifts._rewrite = rewrite


@plant("look-move", "plain", "lost")
def not_found_after_one_pass(package: Package) -> None:
    """It was in none of the folders."""
    package.module("stores.directory.tasks.locate")._PASSES = 1


@plant("done-patrol", "stale", "lost")
def remembered_names_believed(package: Package) -> None:
    """What the kernel says is not there is not there."""
    package.module("stores.directory.context")._disk = lambda *_, **__: _disk(package)()
    # Whoever looks for what other programs have moved lists the folders above, and forgets by that what was missing.
    package.module("stores.directory.tasks.locate").Locator._moved_away = lambda *_: {}


@plant("churned-need", "plain", "too early")
def gone_because_it_was_not_found(package: Package) -> None:
    """A needed task that is nowhere was done and pruned, and the look was thorough."""
    package.module("stores.directory.recovery.missing").Missing.is_gone = lambda *_: True
    package.module("stores.directory.tasks.locate")._PASSES = 1


@plant("fail-untangle", "foreign", "too early")
def needs_that_cannot_be_seen_are_met(package: Package) -> None:
    """What is not there is not needed any more, and whoever needs nothing can go."""
    os = package.kernel.os
    _disk(package).exists = lambda self, path: os.path.lexists(path)
    package.module("stores.directory.recovery.edges").EdgeRecovery._is_free = lambda *_: True
    package.module("stores.directory.tasks.edges").Edges._is_owed = lambda *_: False


@plant("add-claim", "power", "lost")
def file_synced_without_its_folder(package: Package) -> None:
    """The content is safe, and a name is only a name."""
    original = _disk(package).sync

    def sync(self: Any, path: str) -> None:
        if path.endswith(".json"):
            original(self, path)

    _disk(package).sync = sync


@plant("add-after-done", "plain", "stuck")
def needs_looked_at_before_they_are_registered(package: Package) -> None:
    """What it comes after was looked up a moment ago."""
    package.module("stores.directory.tasks.add").Adder.look = lambda *_: None
    package.module("stores.directory.recovery.edges").EdgeRecovery.walk = lambda *_: 0
    package.module("stores.directory.recovery.edges").EdgeRecovery.finish = lambda *_: None


@plant("add-claim", "crash", "log")
def log_without_an_intent(package: Package) -> None:
    """The line is written right after the move."""
    writer = package.module("stores.directory.log.intents").Writers
    writer.intents = lambda *_: []


@plant("threads-done", "crash", "log")
def one_intent_for_all_threads(package: Package) -> None:
    """A process makes one move at a time, until somebody gives it threads."""
    package.module("stores.directory.log.intents").get_ident = lambda: 1
    package.module("stores.directory.log.writer").get_ident = lambda: 1


@plant("resume-zombie", "plain", "result", "acknowledged", "late verb")
def ending_that_looks_before_it_moves(package: Package) -> None:
    """If the claim is there it is ours; then the task is ended by its id."""
    shifts = package.module("stores.directory.tasks.shifts").Shifts
    original = shifts.shift

    def shift(self: Any, standing: Any, move: Any, by: str, more: Any = None) -> bool:
        if move.event == "done":
            found = self._context.locator.find(standing.id)
            if str(found.state) == "processing":
                standing = found.token.standing(found.state, found.place, self._context.policy)
        return bool(original(self, standing, move, by, more))

    shifts.shift = shift


@plant("add-work", "plain", "counters")
def task_in_its_place_before_it_is_written(package: Package) -> None:
    """Its name is what others look for; what it says comes right after."""
    adder = package.module("stores.directory.tasks.add").Adder
    body = package.module("stores.directory.tasks.task_file")
    os, put = package.kernel.os, adder.put
    package.module("stores.directory.tasks.add").task_file = type("Empty", (), {"encode": staticmethod(lambda *_: b"")})

    def written(self: Any, batch: Any, by: str) -> None:
        opened = [(new, os.open(new.written, os.O_WRONLY)) for new in batch]  # writes wherever the file is by then
        put(self, batch, by)
        for new, descriptor in opened:
            os.write(descriptor, body.encode(new.id, new.draft, new.due))
            os.close(descriptor)

    adder.put = written


@plant("beat-reap", "plain", "too early")
def time_by_the_own_clock(package: Package) -> None:
    """All machines have the time from the same place."""
    _disk(package).now = lambda *_: package.kernel.time.time_ns()


@plant("after-two", "plain", "too early")
def let_go_by_the_first_that_is_done(package: Package) -> None:
    """What it waited for is done; the folder will be tidied later."""
    edges = package.module("stores.directory.tasks.edges").Edges

    def meet(self: Any, id: str, other: str, *, tidy: bool = True) -> bool:
        self._context.links.remove(f"{self._needs(id)}/{other}")
        self._context.mover.drop(self._needs(id))
        return True

    edges._meet = meet


@plant("sheet-two", "plain", "too early")
def let_go_by_the_first_line_of_a_sheet(package: Package) -> None:
    """It came after this one."""
    package.module("stores.directory.tasks.sheets").Sheet.freed_by = lambda self, other: self.followers(other)


@plant("use-use", "plain", "in use")
def what_is_used_looked_at_before_the_claim_only(package: Package) -> None:
    """It was free a moment ago."""
    package.module("stores.directory.tasks.uses").Uses.clash = lambda *_: False


@plant("nest-nest", "plain", "in use")
def folders_compared_as_names(package: Package) -> None:
    """What differs is not the same."""
    resources = package.module("core.resources")
    resources.sought = frozenset
    resources.InUse.conflict = lambda self, name, but=None: next(
        ((name, user) for user in self._users.get(name.strip("/"), {}).values() if user != but), None
    )


@plant("use-again", "plain", "in use")
def what_was_seen_at_the_last_claim_believed_after_this_one(package: Package) -> None:
    """It was listed a few milliseconds ago."""
    uses = package.module("stores.directory.tasks.uses").Uses

    def clash(self: Any, name: str) -> bool:
        if not self._seen_at > 0:
            return bool(original(self, name))
        return False

    original, uses.clash = uses.clash, clash


@plant("limit-limit", "plain", "limit")
def limit_looked_at_before_the_claim_only(package: Package) -> None:
    """There was room a moment ago."""
    package.module("stores.directory.tasks.limits").Limits.exceeded = lambda *_: False


@plant("vouched-gone", "plain", "too early")
def dead_without_a_lock(package: Package) -> None:
    """A worker that lives has its file."""
    liveness = package.module("stores.directory.recovery.liveness").Liveness
    original = liveness.is_dead

    def is_dead(self: Any, worker: str, nonce: str) -> bool:
        there = any(name.endswith(f"-{nonce[:8]}") for name in self._disk.listdir(self._folder))
        return not there or bool(original(self, worker, nonce))

    liveness.is_dead = is_dead


@plant("prune-key", "plain", "key")
def key_of_what_is_pruned_removed_by_its_name(package: Package) -> None:
    """The key is that task's, so it goes with it."""
    keys = package.module("stores.directory.tasks.keys").Keys

    def take_away(self: Any, path: str, pruned: str | None = None) -> bool:
        self._disk.remove(path)
        return True

    keys._take_away = take_away


@plant("add-after-fail-cancel", "plain", "stuck")
def failures_looked_at_by_those_who_fail_alone(package: Package) -> None:
    """Whoever fails looks for those that come after."""
    package.module("stores.directory.tasks.edges")._may_give_way = lambda *_: False
    package.module("stores.directory.recovery.edges").EdgeRecovery.walk = lambda *_: 0
    package.module("stores.directory.recovery.edges").EdgeRecovery.finish = lambda *_: None


@plant("fail-untangle-cancel", "plain", "stuck")
def every_need_blocks(package: Package) -> None:
    """What comes after another waits until that is done."""
    needs = package.module("core.needs")
    original = needs.verdict
    needs.verdict = lambda policy, state: original("block", state)


@plant("accept-accept", "plain", "two claims")
def a_review_that_was_recorded_before_is_taken_for_ones_own(package: Package) -> None:
    """It says the same, so let it be mine."""
    records = package.module("stores.directory.tasks.records").Records
    original = records.write_review

    def write_review(self: Any, handle: Any, move: Any, reviewer: Any, *rest: Any) -> dict[str, Any]:
        first = original(self, handle, move, reviewer, *rest)
        return {**first, "review": reviewer.word, "worker": reviewer.worker}

    records.write_review = write_review
