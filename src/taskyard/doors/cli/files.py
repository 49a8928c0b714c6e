"""Writing an answer to a file of the user's."""

from __future__ import annotations

import os
from contextlib import contextmanager

from taskyard.core import ids
from taskyard.core.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO


def write_whole(path: str, text: str) -> None:
    """Put the text in the file's place at once: a reader finds the old content or the new, never a part."""
    with replacing(path) as stream:
        stream.write(text)


@contextmanager
def replacing(path: str) -> Iterator[TextIO]:
    """Open a file that takes the place of the one at this path at the end of the block, and only if nothing was raised.

    The file on its way has another ending, so that a collector of `*.prom` passes over one that a killed process left.
    """
    draft = f"{path}.{ids.base32(ids.chance(40), 8)}.tmp"
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                yield file
            os.replace(draft, path)
        except BaseException:
            os.unlink(draft)
            raise
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be written: {error.strerror or error}", hint="name a file in a folder that can be written"
        ) from None
