"""What actors do, with a note of what they asked for and what they were told: the promise is judged by that."""

from __future__ import annotations

import json
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from .memory import picture
from .program import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from .actors import World
    from .package import Package

FAR = 1e12
REAP = "reap"  # what a sweep ends with


class Hand:
    """One process with the yard open, of this worker's name. Nothing is swept unless it says so."""

    def __init__(self, package: Package, root: str, worker: str) -> None:
        self._package = package
        self._notes = 0
        self.root = root
        self.worker = worker
        taskyard = package.module("")
        self._errors = package.module("core.errors").TaskyardError
        self.yard = taskyard.open(root, worker=worker)
        self.yard._look_at = FAR

    @property
    def world(self) -> World:
        """For whoever has it alone."""
        return self._package.kernel.world

    @property
    def name(self) -> str:
        """The process's own."""
        return self._package.kernel.me.name

    def _call(self, name: str, *args: Any) -> Any:
        return self._package.kernel.me.call(name, args, {})

    def _note(self, **note: Any) -> int:
        """Have it noted what is asked for; its number is for the answer."""
        self._notes += 1
        self._call("say", self._notes, note)
        return self._notes

    def _said(self, verb: str, ask: Callable[[], Any], **about: Any) -> Any:
        """Ask, and note the answer; None where it was refused."""
        handle = about.get("handle")
        if handle is not None:
            id, _, nonce = handle.split(".")
            about["held"] = self._call("begin", id, nonce)  # others may go first
        number = self._note(verb=verb, answer=None, **about)
        try:
            answer = ask()
        except self._errors as error:
            self._call("heard", number, {"answer": type(error).__name__})
            return None
        self._call("heard", number, {"answer": "ok"})
        return number, answer

    def module(self, name: str) -> Any:
        """A module of this process's own package."""
        return self._package.module(name)

    def add(self, kind: str = "build", data: Any = None, **options: Any) -> str | None:
        about = {"key": options.get("key"), "kind": kind, "data": data}
        said = self._said("add", lambda: self.yard.add(kind, data, **options), **about)
        if said is None:
            return None
        self._call("heard", said[0], {"task": said[1].id, "created": said[1].created})
        return str(said[1].id)

    def placed(self, kind: str, data: Any, **options: Any) -> Any:
        """Look up what a new task comes after, and give it its id and place, as an add does before it writes anything of it."""
        adder = self.yard._store.adder
        draft = self._package.module("core.draft").Draft.of({"kind": kind, "data": data, **options})
        adder.resolve(draft)
        return adder.place(draft)

    def publish(self, new: Any) -> None:
        """Do the rest of that add."""
        adder, context = self.yard._store.adder, self.yard._store._context
        encode = self._package.module("stores.directory.tasks.task_file").encode

        def ask() -> None:
            adder.connect([new], context.durable)
            context.disk.create(new.written, encode(new.id, new.draft, new.due), context.durable)
            adder.put([new], self.worker)
            adder.sync({new.folder})
            adder.look([new], self.worker)

        said = self._said("add", ask, key=None, kind=new.draft.kind, data=new.draft.data)
        if said is not None:
            self._call("heard", said[0], {"task": new.id, "created": True})

    def claim(self, id: str | None = None, **options: Any) -> Any:
        return self._granted(lambda: self.yard.claim(id, **options))

    def claim_if_any(self) -> Any:
        """Claim, and note what was there all the time if nothing was ready."""
        before = self._call("waiting")
        claim = self.claim()
        if claim is None:
            left = [path for path in self._call("waiting") if path in before]
            self._note(verb="passed over", answer="ok", left=left)
        return claim

    def grab(self, id: str) -> Any:
        """Claim this very task, as Yard does but for the sweep and the second try where it is refused."""
        yard, claim = self.yard, self._package.module("yard.claim").Claim

        def ask() -> Any:
            grants = yard._store.claim(yard._want(id, None, None, None), [yard._nonce()])
            grant = grants[0] if grants else None
            return None if grant is None else claim(yard, grant.standing, grant)

        return self._granted(ask)

    def _granted(self, ask: Callable[[], Any]) -> Any:
        said = self._said("claim", ask)
        if said is None or said[1] is None:
            return None
        number, claim = said
        granted = {"granted": claim.handle, "fence": claim.fence, "data": claim.task.data}
        self._call("heard", number, {"task": claim._parsed().id, **granted})
        return claim

    def done(self, claim: Any, result: Any = None) -> bool:
        return self._said("done", lambda: claim.done(result), handle=claim.handle, result=result) is not None

    def in_two_threads(self, first: Callable[[], object], second: Callable[[], object]) -> None:
        """Do both in one process: the second whole, between a move of the first and its event."""
        log, kernel = self.yard._store._context.log, self._package.kernel
        one, other = kernel.thread, kernel.thread + 1

        def append(line: bytes) -> None:
            del log.append
            kernel.thread = other
            try:
                second()
            finally:
                kernel.thread = one
            log.append(line)

        log.append = append
        first()

    def fail(self, claim: Any, reason: str = "no", **options: Any) -> bool:
        said = self._said("fail", lambda: claim.fail(reason, **options), handle=claim.handle, reason=reason)
        return said is not None

    def release(self, claim: Any) -> bool:
        return self._said("release", claim.release, handle=claim.handle) is not None

    def hand_back(self, standing: Any) -> None:
        """Release without a word of it, and without a record."""
        todo = self._package.module("core.task").State.TODO
        move = self._package.module("core.moves").Move("released", todo, standing.fence + 1, 0, 0)
        self.yard._store.shift([(standing, move)], self.worker)

    def beat(self, claim: Any) -> bool:
        return self._said("heartbeat", claim.heartbeat, handle=claim.handle) is not None

    def note(self, claim: Any, text: str) -> bool:
        return self._said("note", lambda: claim.note(text), handle=claim.handle) is not None

    def vouch(self, lease: float) -> None:
        """From here on a lock tells others whether this process lives."""
        self.yard.vouch(lease)

    def held(self, handle: str) -> Any:
        """The claim of a handle that this process was told and nothing else."""
        return self.yard.held(handle)

    def granted(self, id: str) -> str:
        """The handle of this task that somebody was told."""
        return str(self._call("granted", id))

    def resume(self) -> list[Any]:
        said = self._said("resume", self.yard.resume)
        for claim in said[1] if said else []:
            granted = {"task": claim._parsed().id, "granted": claim.handle, "fence": claim.fence}
            self._note(verb="claim", answer="ok", **granted)
        return said[1] if said else []

    # What Yard does for these, but for the look at the task that it gives back

    def _revised(self, verb: str, id: str, decide: Callable[[Any], Any], standing: Any = None) -> bool:
        store = self.yard._store

        def ask() -> None:
            at = standing or store.stand(id)
            while not store.shift([(at, decide(at))], self.worker)[0]:
                at = store.stand(id)

        return self._said(verb, ask, task=id) is not None

    def stand(self, id: str) -> Any:
        return self.yard._store.stand(id)

    def submit(self, claim: Any, result: Any) -> None:
        """Hand in a result for review, without a word of it: no ending was promised yet."""
        moves = self._package.module("core.moves")
        self.yard._store.shift([(claim.ref, moves.submitted(claim.ref, result))], self.worker)

    def accept(self, id: str, nonce: str, result: Any) -> bool:
        """Accept what was submitted: the reviewer's claim and its done in one move, noted as both once it is made."""
        moves, fence = self._package.module("core.moves"), self.stand(id).fence
        made = self._revised("accept", id, lambda at: moves.accepted(at, self._reviewer(nonce), result))
        if made:
            handle = f"{id}.{fence}.{nonce}"
            self._note(verb="claim", answer="ok", task=id, granted=handle, fence=fence, data={"n": 1})
            self._note(verb="done", answer="ok", handle=handle, result=result)
        return made

    def reject(self, id: str, nonce: str, note: str) -> bool:
        moves = self._package.module("core.moves")
        return self._revised("reject", id, lambda at: moves.rejected(at, self._reviewer(nonce), note))

    def _reviewer(self, nonce: str) -> Any:
        return self._package.module("core.moves").Reviewer(self.worker, nonce, f"word-of-{self.worker}")

    def cancel(self, id: str, standing: Any = None) -> bool:
        return self._revised("cancel", id, self._package.module("core.moves").cancelled, standing)

    def retry(self, id: str, standing: Any = None) -> bool:
        return self._revised("retry", id, self._package.module("core.moves").retried, standing)

    def edit(self, id: str, standing: Any = None, **changes: Any) -> bool:
        store, moves = self.yard._store, self._package.module("core.moves")

        def ask() -> None:
            at = standing or store.stand(id)
            while True:
                moves.editable(at)
                old = store.get(id).draft()
                if (
                    old is not None
                    and store.shift([(at, moves.edited(at, old.changed(changes), False))], self.worker)[0]
                ):
                    return
                at = store.stand(id)

        return self._said("edit", ask, task=id, changes=changes) is not None

    def decide_after(self, id: str, other: str) -> Any:
        """Decide the edit that puts a task behind another one, as Yard does."""
        store = self.yard._store
        at, new = store.stand(id), store.get(id).draft()
        new.after, unmet = self._package.module("yard.dependencies").replaced(store, id, [other])
        return at, self._package.module("core.moves").edited(at, new, False, unmet)

    def put_behind(self, id: str, other: str, decided: Any) -> bool:
        """Make that edit, decided anew as long as the task moves meanwhile."""

        def ask() -> None:
            shift = decided
            while not self.yard._store.shift([shift], self.worker)[0]:
                shift = self.decide_after(id, other)

        return self._said("edit", ask, task=id, changes={}) is not None

    def reap(self) -> bool:
        """The share of the janitor's work that every claim does before it says that nothing is ready."""
        return self._said("reap", self._reap) is not None

    def _reap(self) -> None:
        self._package.module("yard.janitor").sweep(self.yard._store, self.worker)

    def expire(self) -> bool:
        """The share of a sweep that cancels what nobody has started in time."""
        return self._said("expire", lambda: self.yard._store.upkeep.expire(self.worker, 10)) is not None

    def sweep(self) -> bool:
        return self._said("sweep", self.yard.sweep) is not None

    def sweep_in(self, *duties: str) -> bool:
        """Some of the duties that make up a sweep, or all of them; between two, this process is what it remembers."""
        mending = self.yard._store.upkeep._crashes

        def ask() -> None:
            known = {"now": mending._context.clock.exact(), "by": self.worker}
            for duty in duties:
                self._rest(duty, known)
                if duty == REAP:
                    self._reap()
                    continue
                act = attrgetter(duty)(mending)
                act(*(known[name] for name in act.__code__.co_varnames[1 : act.__code__.co_argcount]))

        return self._said("sweep", ask) is not None

    def _rest(self, *about: object) -> None:
        """From here on this process is what it remembers, whatever it was told: the yard, and this."""
        me = self._package.kernel.me
        assert isinstance(me, Run)
        me.rests(picture(self.yard, self._notes, *about))

    def prune(self, **options: Any) -> bool:
        return self._said("prune", lambda: self.yard.prune(apply=True, **options)) is not None

    def look(self, id: str) -> Any:
        said = self._said("look", lambda: self.yard.report(id), task=id)
        return None if said is None else said[1]

    def stood(self, id: str) -> bool:
        """Whether the task could be found."""
        return self._said("find", lambda: self.stand(id), task=id) is not None

    def pause(self, seconds: float) -> None:
        """So long passes, for everybody, while this one stands still."""
        self._call("advance", seconds)

    def drop(self, name: str, content: dict[str, Any], pieces: int = 1) -> None:
        """Write a file into the drop box as `cp` does, in so many writes."""
        os = self._package.kernel.os
        number = self._note(verb="drop", answer=None, file=name, data=content)
        text = json.dumps(content).encode()
        try:
            descriptor = os.open(f"{self.root}/todo/{name}.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            for piece in range(pieces):
                os.write(descriptor, text[len(text) * piece // pieces : len(text) * (piece + 1) // pieces])
            os.close(descriptor)
            self._call("heard", number, {"answer": "ok"})
        except OSError:
            self._call("heard", number, {"answer": "failed"})
