"""Heartbeats beside the work: in time, only for what is held, and never for a worker that is stopped."""

from __future__ import annotations

import io
import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Unavailable
from taskyard.core.times import ticks
from taskyard.worker import Job, heartbeat_process
from taskyard.worker.heartbeat_process import ProcessBeats
from taskyard.worker.heartbeats import Heartbeats, ThreadBeats
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard

LEASE = 2.0  # a companion has to start within a third of it, also on a machine that has much else to do


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with taskyard.init(tmp_path / "yard", worker="ada", durability="fast") as opened:
        opened.add("build")
        yield opened


@pytest.mark.parametrize("kind", ["thread", "companion"])
def test_a_claim_outlives_its_lease_while_it_is_held_and_no_longer(yard: Yard, kind: str) -> None:
    beats = ThreadBeats() if kind == "thread" else ProcessBeats(yard.url, "ada")
    job = Job(taken(yard.claim(lease=LEASE)))
    try:
        beats.hold([job])
        end = time.monotonic() + 2 * LEASE
        with taskyard.open(yard.url) as other:
            while time.monotonic() < end:
                assert not other.sweep().reaped
                time.sleep(0.02)
            beats.drop([job])
            wait_until(lambda: other.sweep().reaped)
    finally:
        beats.close()


@pytest.mark.parametrize("kind", ["thread", "companion"])
def test_a_claim_that_is_gone_is_told_and_one_that_its_holder_ended_is_not(yard: Yard, kind: str) -> None:
    beats = ThreadBeats() if kind == "thread" else ProcessBeats(yard.url, "ada")
    yard.add("build")
    ended, cancelled = (Job(taken(yard.claim(lease=LEASE))) for _ in range(2))
    try:
        beats.hold([ended])
        beats.hold([cancelled])
        with taskyard.open(yard.url) as other:
            other.held(ended.handle).done()
            other.cancel(cancelled.id)
        wait_until(lambda: cancelled.lost)
        assert not ended.lost
    finally:
        beats.close()


def test_a_worker_that_does_not_run_is_not_beaten_for(yard: Yard) -> None:
    runs = False
    pulse = Heartbeats(yard.held, lambda _: None, lambda: runs)
    claim = taken(yard.claim(lease=0.2))
    pulse.add(claim.handle, 0.2)
    with taskyard.open(yard.url) as other:

        def turned() -> bool:
            pulse.turn()
            return bool(other.sweep().reaped)

        wait_until(turned)
    lost: list[str] = []
    pulse._lost = lost.append

    def told() -> list[str]:
        pulse.turn()
        return lost

    wait_until(told)
    assert lost == [claim.handle]
    assert pulse.due_in() is None


def test_a_store_that_is_away_loses_no_claim(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[str] = []
    pulse = Heartbeats(yard.held, lost.append)
    claim = taken(yard.claim(lease=0.05))
    pulse.add(claim.handle, 0.05)
    asked: list[int] = []

    def away(*_: object) -> None:
        asked.append(1)
        raise Unavailable

    monkeypatch.setattr(yard._store, "holding", away)
    monkeypatch.setattr(yard._store, "renew", away)

    def looked() -> bool:
        pulse.turn()
        return len(asked) > 3

    wait_until(looked)
    assert lost == []
    assert pulse.due_in() is not None


def test_a_companion_that_finds_no_yard_waits_for_it_in_silence(
    yard: Yard, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    beats = ProcessBeats(yard.url, "ada")
    job = Job(taken(yard.claim(lease=60)))
    (tmp_path / "yard").rename(tmp_path / "away")
    try:
        beats.hold([job])
        assert beats._process is not None
        first = beats._process.pid
        with pytest.raises(subprocess.TimeoutExpired):
            beats._process.wait(1)
        (tmp_path / "away").rename(tmp_path / "yard")
        with taskyard.open(yard.url) as other:
            other.cancel(job.id)
        wait_until(lambda: job.lost)
        assert beats._process.pid == first
    finally:
        beats.close()
    assert capfd.readouterr().err == ""


def test_a_worker_that_goes_while_its_companion_looks_at_it_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise ProcessLookupError

    assert heartbeat_process._runs(os.getpid())
    monkeypatch.setattr(heartbeat_process, "open", lambda *_: Gone(), raising=False)
    assert not heartbeat_process._runs(os.getpid())


def test_a_companion_that_waits_for_its_yard_does_not_keep_the_worker(yard: Yard, tmp_path: Path) -> None:
    beats = ProcessBeats(yard.url, "ada")
    job = Job(taken(yard.claim(lease=60)))
    (tmp_path / "yard").rename(tmp_path / "away")
    beats.hold([job])
    beats.close()
    (tmp_path / "away").rename(tmp_path / "yard")


def test_a_worker_beats_at_once_when_its_machine_wakes_up(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    beats: list[str] = []
    monkeypatch.setattr(taskyard.Claim, "heartbeat", lambda claim: beats.append(claim.handle))
    pulse = Heartbeats(yard.held, lambda _: None)
    handle = taken(yard.claim(lease=1800)).handle
    pulse.add(handle, 1800)
    pulse.turn()
    assert beats == []
    woken = ticks() + 3600
    monkeypatch.setattr("taskyard.worker.heartbeats.ticks", lambda: woken)
    pulse.turn()
    assert beats == [handle]
