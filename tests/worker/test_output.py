"""A command's output: its beginning and its end are kept, in bounded room, whatever becomes of the disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from taskyard.worker.guard import Output

if TYPE_CHECKING:
    from pathlib import Path

MOST, TAIL = 1000, 300


def put(path: Path | None, *chunks: bytes) -> tuple[str, int]:
    """What is told of this output in the end, and the most that was held in memory."""
    ours, theirs = os.pipe()
    output = Output(ours, None if path is None else str(path), MOST, TAIL)
    held = 0
    for chunk in chunks:
        os.write(theirs, chunk)
        assert output.pump()
        held = max(held, len(output._kept))
    os.close(theirs)
    assert not output.pump()
    return output.close(), held


def test_what_fits_is_kept_whole(tmp_path: Path) -> None:
    assert put(tmp_path / "log", b"one\n", b"two\n")[0] == "one\ntwo\n"
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"


def test_what_does_not_fit_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    whole = b"".join(b"%07d\n" % number for number in range(10_000))
    told, held = put(tmp_path / "log", *(whole[at : at + 5000] for at in range(0, len(whole), 5000)))
    assert told == whole[-TAIL:].decode()
    kept = (tmp_path / "log").read_bytes()
    assert kept.startswith(whole[:500])
    assert kept.endswith(b"\n[79000 bytes left out]\n" + whole[-500:])
    assert len(kept) < MOST + 50
    assert held <= 2 * 500 + 5000


@pytest.mark.parametrize("size", [499, 500, 501, 999, 1000, 1001])
def test_at_the_edge_nothing_is_left_out_or_kept_twice(tmp_path: Path, size: int) -> None:
    whole = bytes(97 + number % 26 for number in range(size))
    put(tmp_path / "log", whole)
    kept = (tmp_path / "log").read_bytes()
    assert kept == whole if size <= MOST else kept == whole[:500] + b"\n[1 bytes left out]\n" + whole[-500:]


def test_a_stream_without_a_word_leaves_no_file(tmp_path: Path) -> None:
    assert put(tmp_path / "log")[0] == ""
    assert not (tmp_path / "log").exists()


def test_a_log_that_cannot_be_written_loses_the_log_and_not_the_words(tmp_path: Path) -> None:
    assert put(tmp_path / "gone" / "log", b"words")[0] == "words"
    assert put(None, b"words")[0] == "words"


def test_a_log_that_is_a_pipe_without_a_reader_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    assert put(tmp_path / "log", b"words")[0] == "words"


def test_letters_that_were_cut_in_half_are_told_as_such() -> None:
    assert put(None, "ä".encode()[:1])[0] == "\ufffd"
    assert put(None, b"ok \xff\xfe")[0] == "ok \ufffd\ufffd"


def test_a_stream_that_never_pauses_does_not_keep_its_reader() -> None:
    """Or a command that writes without end could not be stopped."""
    output = Output(os.open("/dev/zero", os.O_RDONLY), None, MOST, TAIL)
    assert output.pump()
    assert len(output.close()) == TAIL
