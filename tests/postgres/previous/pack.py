"""Pack the client of an earlier schema, with the contract suite that it was right by: `python pack.py COMMIT NUMBER`.

Say it with the commit of a version that users were given, and the number of its schema: it is then what must go on working on
every schema to come that says so (min_client). It is kept here because tests must not need the project's history, nor a network. What serves no
yard in PostgreSQL is left out.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

KEPT = ("src/taskyard", "tests/__init__.py", "tests/conftest.py", "tests/contract", "tests/servers")
LEFT_OUT = ("src/taskyard/doors/", "src/taskyard/stores/directory/doctor/", "src/taskyard/stores/directory/fsck/")


def pack(commit: str, number: int) -> None:
    root = Path(__file__).parents[3]
    found = subprocess.run(["git", "archive", commit, *KEPT], cwd=root, stdout=subprocess.PIPE, check=True).stdout
    with (
        tarfile.open(fileobj=io.BytesIO(found)) as archive,
        tarfile.open(Path(__file__).with_name(f"schema{number}.tar.xz"), "w:xz", preset=9) as kept,
    ):
        for member in archive:
            if member.isfile() and not member.name.startswith(LEFT_OUT):
                kept.addfile(member, archive.extractfile(member))


if __name__ == "__main__":
    pack(sys.argv[1], int(sys.argv[2]))
