"""What can go wrong, once in a run: each mode names what may happen to the call that an actor stands before."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .actors import FOREIGN, KILL, LOST, MISSED, TWICE
from .kernel import CHANGING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .actors import Actor, World


def nothing(_world: World, _actor: Actor) -> Sequence[str]:
    """Nothing goes wrong."""
    return ()


def crash(_world: World, actor: Actor) -> Sequence[str]:
    """The process is killed before any call that leaves something behind; after the last it ends without a word anyway."""
    name, args, _ = actor.pending or ("", (), {})
    if name == "open":
        return (KILL,) if args[1] & os.O_CREAT else ()
    return (KILL,) if name in CHANGING else ()


def lost_reply(world: World, actor: Actor) -> Sequence[str]:
    """A rename takes place, and the answer is that there was nothing to rename: the server had to be asked twice."""
    name, args, _ = actor.pending or ("", (), {})
    if name != "rename":
        return ()
    folder, _, last = args[0].rpartition("/")
    into = args[1].rpartition("/")[0]
    there = last in world.files.names.get(folder, ()) and into in world.files.names
    return (LOST,) if there else ()


def fault(world: World, actor: Actor) -> Sequence[str]:
    """The disk is full or broken, or the process has too many files open: the call does nothing and says so."""
    name, args, _ = actor.pending or ("", (), {})
    if name == "open":
        return ("ENOSPC",) if args[1] & os.O_CREAT else ("EMFILE",)
    if name in ("write", "mkdir", "link", "rename"):
        return ("ENOSPC",)
    if name in ("utime", "stat", "rmdir", "unlink"):
        return ("ESTALE",) if world.network else ("EIO",)
    return ("EIO",) if name in ("read", "fsync", "syncfs") else ("EMFILE",) if name == "listdir" else ()


def torn_listing(world: World, actor: Actor) -> Sequence[str]:
    """A listing takes its time: names that come or go meanwhile may be missed, or shown though they are gone."""
    name, args, _ = actor.pending or ("", (), {})
    if name == "listdir" and world.minded(world, actor, ("list", args[0])):
        return (MISSED, TWICE)
    return ()


def foreign_folder(world: World, actor: Actor) -> Sequence[str]:
    """A folder that the yard made as it went is another user's, who keeps it to himself: from here on this process is shut out."""
    name, args, _ = actor.pending or ("", (), {})
    if name not in ("listdir", "open", "stat", "access", "exists") or (name == "open" and args[1] & os.O_CREAT):
        return ()
    folder = args[0] if name == "listdir" else args[0].rpartition("/")[0]
    made_later = folder.startswith(f"{world.root}/") and folder.count("/") > world.root.count("/") + 1
    return (FOREIGN,) if made_later and folder in world.files.names and not actor.shut_out else ()


MODES = {
    "plain": nothing,
    "crash": crash,
    "lost": lost_reply,
    "fault": fault,
    "torn": torn_listing,
    "foreign": foreign_folder,
}
