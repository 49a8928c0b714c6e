"""Anything may have happened to any file of a yard: every verb still gives a legal answer, and other work goes on."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given, note
from hypothesis import strategies as st

from tests.conftest import sized
from tests.hostile import verbs
from tests.hostile.conftest import examples

if TYPE_CHECKING:
    from collections.abc import Callable

_numbers = itertools.count()

GARBAGE = (
    b"", b"\x00", b"{", b"[]", b"null", b'"text"', b"0", b"{}", b'{"taskyard":1,"data":1}', b'{"taskyard":1,"id":"../../x","kind":"a","data":1}',
    b'{"taskyard":1,"id":5,"kind":[],"priority":"x","data":1}', b'{"taskyard":1,"as_dict":1,"after":3,"uses":{"a":1},"title":7,"data":NaN}',
    b"[" * 5000, b'{"a":' * 5000, b"9" * 5000, b'{"taskyard":1,"data":' + b"9" * 5000 + b"}", b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}",
    b'{"at":5,"event":[],"task":{},"fence":"x","kind":null}\n', b'{"at":"x","event":"done"}\n', b'{"task":"x"}\n', b'{"event":"added","tasks":[1,"../x"]}\n',
    b'{"progress":"much"}', b'{"claim":3,"fence":"x","outcome":"done","errors":"x","crashes":null,"at":7}', b'{"taskyard":1,"features":[],"settings":7}',
    b'{"at":"2026-01-01T00:00:00.000Z","event":"claimed","task":"0000","fence":99999999999999999999,"kind":"x","worker":"y","by":"z"}\n',
    b'{"kernel":3,"device":[],"inode":{}}', b"99999999999999999999999999 5-build\n", b"x\n" * 3000, b"\n" * 70000,
)  # fmt: skip

# Not "@": in paused/ that is how anybody pauses the yard.
NAMES = (
    "x", "0", "99999999999999999999", "-1", "zzzz", "0000", "9-x", "5-build@", "5-%ZZ", "5-%FF", "a\nb.json", "..json", "~", "%", "@@", ".new", "1-00000000",
    "000000000000000000000.json", "000000000000000000000.0.e0.c0.json", "000000000000000000000.99999999.e0.c0.json",
    "000000000000000000000.999999999.e9999999999999.c0.json", "000000000000000000000.0.e0.c0.x.b00000000.m0.t0.u.json",
    "000000000000000000000.0.e0.c0.5-build.d9999999999999.json", "000000000000000000000.1.e0.c0.5-build.l9999999999999.ada-00000000.json",
    "000000000000000000000.1.e0.c0.5-build.l0.L.ada-000000001.json", "000000000000000000000.1.e0.c0.5-build.l1.%2E%2E-000000001.r.json",
    "zzzzzzzzzzzzzzzzzzzzz.0.e0.c0.json", "2026-01-01T00.x.jsonl", "9999-99-99T99.x.99999999999999999999.jsonl", "x.drop", "1-00000000.1.x.drop",
    "1-00000000.1", "init-00000000", "0001-01-01", "9999-12-31", "x" * 200 + ".json", "\udcff.json",
)  # fmt: skip


def flip(path: Path, value: int, twin: Path) -> None:
    if path.is_file() and (content := bytearray(path.read_bytes())):
        for _ in range(1 + value % 5):
            content[value * 7919 % len(content)] ^= 1 << value % 8
            value += 1
        path.write_bytes(content)


def cut(path: Path, value: int, twin: Path) -> None:
    if path.is_file():
        os.truncate(path, value % (path.stat().st_size + 1))


def garble(path: Path, value: int, twin: Path) -> None:
    if path.is_file():
        path.write_bytes(GARBAGE[value % len(GARBAGE)])


def grow(path: Path, value: int, twin: Path) -> None:
    if path.is_file():
        os.truncate(path, 1 << (20 + value % 25))


def remove(path: Path, value: int, twin: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def rename(path: Path, value: int, twin: Path) -> None:
    target = path.with_name(NAMES[value % len(NAMES)])
    if not target.exists():
        path.rename(target)


def plant(path: Path, value: int, twin: Path) -> None:
    """A file of an odd name beside this one, or in it."""
    folder = path if path.is_dir() else path.parent
    target = folder / NAMES[value % len(NAMES)]
    if not target.exists():
        target.write_bytes(GARBAGE[value // len(NAMES) % len(GARBAGE)])


def plant_folder(path: Path, value: int, twin: Path) -> None:
    folder = path if path.is_dir() else path.parent
    (folder / NAMES[value % len(NAMES)]).mkdir(exist_ok=True)


def swap(path: Path, value: int, twin: Path) -> None:
    aside = path.with_name("aside")
    if path in twin.parents or twin in path.parents or path == twin:
        return
    path.rename(aside)
    twin.rename(path)
    aside.rename(twin)


def copy(path: Path, value: int, twin: Path) -> None:
    """The same content, or a second name of the file, under the other's name or beside it."""
    target = (twin if twin.is_dir() else twin.parent) / path.name
    if path.is_file() and not target.exists():
        os.link(path, target) if value % 2 else shutil.copy(path, target)


def replace(make: Callable[[Path], object]) -> Callable[[Path, int, Path], None]:
    def mutate(path: Path, value: int, twin: Path) -> None:
        remove(path, value, twin)
        make(path)

    return mutate


def bind(path: Path) -> None:
    here = os.open(path.parent, os.O_RDONLY)
    try:  # a socket's path has at most 108 characters
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"/proc/self/fd/{here}/s")
        os.rename(path.parent / "s", path)
    finally:
        os.close(here)


def shut(path: Path, value: int, twin: Path) -> None:
    path.chmod((0o000, 0o444, 0o222, 0o555)[value % 4])


MUTATIONS: dict[str, Callable[[Path, int, Path], None]] = {
    "flip": flip,
    "cut": cut,
    "garble": garble,
    "garble more": garble,
    "grow": grow,
    "remove": remove,
    "rename": rename,
    "plant": plant,
    "plant a folder": plant_folder,
    "swap": swap,
    "copy": copy,
    "a folder in its place": replace(Path.mkdir),
    "a file in its place": replace(Path.touch),
    "a link in its place": replace(lambda path: path.symlink_to("/etc/passwd")),
    "a link to itself in its place": replace(lambda path: path.symlink_to(path.name)),
    "a link to a folder in its place": replace(lambda path: path.symlink_to("/")),
    "a pipe in its place": replace(os.mkfifo),
    "a socket in its place": replace(bind),
    "shut": shut,
}


def paths(root: Path) -> list[Path]:
    """All that is in the yard below its standing folders, in an order that does not depend on chance."""
    there = [
        (path.relative_to(root).parts[0], len(path.parts), path.lstat().st_mtime_ns, path.name, path)
        for path in root.rglob("*")
        if len(path.relative_to(root).parts) > 1 and os.access(path.parent, os.X_OK, effective_ids=True)
    ]
    return [entry[-1] for entry in sorted(there)]


def duplicate(template: verbs.Yard, path: Path) -> verbs.Yard:
    """The same yard once more, with its hard links."""
    subprocess.run(["cp", "-a", str(template.path), str(path)], check=True)
    twin = verbs.Yard.__new__(verbs.Yard)
    twin.__dict__ = {**template.__dict__, "path": path}
    return twin


STEP = st.tuples(st.integers(0, 999), st.sampled_from(sorted(MUTATIONS)), st.integers(0, 9999), st.integers(0, 999))


@sized("number", 15, 90)
def test_whatever_became_of_its_files_a_yard_gives_legal_answers(context: Path, number: int) -> None:
    template = verbs.Yard(context / "template")

    @examples(number)
    @given(st.lists(STEP, min_size=1, max_size=3))
    def try_it(steps: list[tuple[int, str, int, int]]) -> None:
        yard = duplicate(template, context / f"yard-{next(_numbers)}")
        around = set(os.listdir(context))
        try:
            touched, sound = [], True
            for which, how, value, other in steps:
                there = paths(yard.path)
                path, twin = there[which % len(there)], there[other % len(there)]
                note(f"{how} {value}: {path.relative_to(yard.path)} {twin.relative_to(yard.path)}")
                try:
                    MUTATIONS[how](path, value, twin)
                except OSError as error:
                    note(f"not possible: {error}")
                touched += [path, twin]
                sound = sound and not (how == "shut" and path.is_dir())  # nobody can work in a folder that is shut
            verbs.move(yard)
            verbs.look(yard)
            if sound:
                verbs.work_goes_on(yard.path)
            ended = verbs.drain(yard.path) if sound else [yard.plain]
            if not any("todo" in path.parts or "processing" in path.parts for path in touched):
                said = verbs.say(yard.path, "show", yard.plain)
                assert yard.plain in ended or said.code == 6 or said.envelope["data"]["task"]["state"] != "todo", said
            assert set(os.listdir(context)) == around
        finally:
            subprocess.run(["chmod", "-R", "u+rwX", str(yard.path)], check=False)
            shutil.rmtree(yard.path, ignore_errors=True)

    try_it()
