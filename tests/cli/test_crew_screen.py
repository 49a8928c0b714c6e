"""The screen of a crew, drawn where somebody may take the terminal away at any moment."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from taskyard.doors.cli.verbs.running.crew import screen

if TYPE_CHECKING:
    import pytest


def test_a_ctrl_z_in_the_middle_of_a_frame_has_the_next_one_drawn_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    heard, told = os.pipe()
    os.set_blocking(heard, False)
    monkeypatch.setattr(screen, "_opened", lambda: told)
    monkeypatch.setattr(os, "kill", lambda *_: None)  # stands still, and goes on

    class View:
        suspends = False

        def frame(self, *_: object) -> list[str]:
            if self.suspends:
                shown._on_suspend(signal.SIGTSTP, None)
            return ["up 19 s", "ada idle"]

    view: Any = View()
    shown = screen.Screen(view)
    try:
        shown.draw("", 1.0)
        view.suspends = True
        shown.draw("", 2.0)
        view.suspends = False
        os.read(heard, 1 << 16)
        shown.draw("", 3.0)
        assert b"ada idle" in os.read(heard, 1 << 16)
    finally:
        shown.close()
        os.close(heard)
