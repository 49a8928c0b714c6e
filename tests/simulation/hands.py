"""What actors do, with a note of what they asked for and what they were told: the promise is judged by that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .actors import World

FAR = 1e12


class Hand:
    """One process with the yard open, of this worker's name. Nothing is swept unless it says so."""

    def __init__(self, world: World, worker: str) -> None:
        self.world = world
        self.worker = worker
        taskyard = world.package.module("")
        self._errors = world.package.module("errors").TaskyardError
        self.yard = taskyard.open(world.root, worker=worker)
        self.yard._look_at = FAR

    def _said(self, verb: str, ask: Callable[[], Any], **about: Any) -> Any:
        """Ask, and note the answer; None where it was refused."""
        actor = self.world.me
        note = {"by": actor.name, "verb": verb, "answer": None, **about}
        handle = about.get("handle")
        if handle is not None and self.world.watch is not None:
            self.world.call("begin", (f"{self.world.root}/processing",), {})  # others may go first
            id, _, nonce = handle.split(".")
            note["held"] = self.world.watch.holder(id) == nonce
            self.world.heard(note["held"])
        self.world.told.append(note)
        try:
            answer = ask()
        except self._errors as error:
            note["answer"] = type(error).__name__
            return None
        note["answer"] = "ok"
        return note, answer

    def add(self, kind: str = "build", data: Any = None, **options: Any) -> str | None:
        about = {"key": options.get("key"), "kind": kind, "data": data}
        said = self._said("add", lambda: self.yard.add(kind, data, **options), **about)
        if said is None:
            return None
        said[0].update(task=said[1].id, created=said[1].created)
        return str(said[1].id)

    def claim(self, id: str | None = None, **options: Any) -> Any:
        said = self._said("claim", lambda: self.yard.claim(id, **options))
        if said is None or said[1] is None:
            return None
        note, claim = said
        note.update(task=claim._parsed().id, granted=claim.handle, fence=claim.fence, data=claim.task.data)
        return claim

    def done(self, claim: Any, result: Any = None) -> bool:
        return self._said("done", lambda: claim.done(result), handle=claim.handle, result=result) is not None

    def fail(self, claim: Any, reason: str = "no", **options: Any) -> bool:
        said = self._said("fail", lambda: claim.fail(reason, **options), handle=claim.handle, reason=reason)
        return said is not None

    def release(self, claim: Any) -> bool:
        return self._said("release", claim.release, handle=claim.handle) is not None

    def beat(self, claim: Any) -> bool:
        return self._said("heartbeat", claim.heartbeat, handle=claim.handle) is not None

    def note(self, claim: Any, text: str) -> bool:
        return self._said("note", lambda: claim.note(text), handle=claim.handle) is not None

    def held(self, handle: str) -> Any:
        """The claim of a handle that this process was told and nothing else."""
        return self.yard.held(handle)

    def resume(self) -> list[Any]:
        said = self._said("resume", self.yard.resume)
        for claim in said[1] if said else []:
            again = {"verb": "claim", "answer": "ok", "task": claim._parsed().id, "granted": claim.handle}
            self.world.told.append({"by": self.world.me.name, "fence": claim.fence, **again})
        return said[1] if said else []

    # What Yard does for these, but for the look at the task that it gives back

    def _revised(self, verb: str, id: str, decide: Callable[[Any], Any], standing: Any = None) -> bool:
        store = self.yard._store

        def ask() -> None:
            at = standing or store.stand(id)
            while not store.shift(at, decide(at), self.worker):
                at = store.stand(id)

        return self._said(verb, ask, task=id) is not None

    def stand(self, id: str) -> Any:
        return self.yard._store.stand(id)

    def cancel(self, id: str, standing: Any = None) -> bool:
        return self._revised("cancel", id, self.world.package.module("moves").cancelled, standing)

    def retry(self, id: str, standing: Any = None) -> bool:
        return self._revised("retry", id, self.world.package.module("moves").retried, standing)

    def edit(self, id: str, standing: Any = None, **changes: Any) -> bool:
        store, moves = self.yard._store, self.world.package.module("moves")

        def ask() -> None:
            at = standing or store.stand(id)
            while True:
                move, old = moves.edited(at, None), store.drafted(at)
                if old is not None and store.rewrite(at, old.changed(changes), move, self.worker, due_anew=False):
                    return
                at = store.stand(id)

        return self._said("edit", ask, task=id, changes=changes) is not None

    def reap(self) -> bool:
        """The share of the janitor's work that every claim does before it says that nothing is ready."""
        janitor = self.world.package.module("janitor")
        return self._said("reap", lambda: janitor.sweep(self.yard._store, self.worker)) is not None

    def sweep(self) -> bool:
        return self._said("sweep", self.yard.sweep) is not None

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
        self.world.call("advance", (seconds,), {})

    def drop(self, name: str, content: dict[str, Any], pieces: int = 1) -> None:
        """Write a file into the drop box as `cp` does, in so many writes."""
        os = self.world.package.kernel.os
        self.world.told.append(
            {"by": self.world.me.name, "verb": "drop", "answer": None, "file": name, "data": content}
        )
        note = self.world.told[-1]
        text = json.dumps(content).encode()
        try:
            descriptor = os.open(f"{self.world.root}/todo/{name}.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            for piece in range(pieces):
                os.write(descriptor, text[len(text) * piece // pieces : len(text) * (piece + 1) // pieces])
            os.close(descriptor)
            note["answer"] = "ok"
        except OSError:
            note["answer"] = "failed"
