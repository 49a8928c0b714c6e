"""The yard at the end, as a judge sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taskyard
from taskyard.proof import final_state
from tests.conftest import taken

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_move_that_was_logged_late_is_in_its_place_though_the_log_is_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(final_state, "_LOG_PAGE", 2)
    with taskyard.init(tmp_path / "yard") as yard:
        late = yard.add("build")
        for _ in range(2):
            yard.add("other")
        taken(yard.claim(late.id)).done()
        (page,) = (tmp_path / "yard" / "events").iterdir()
        added, *others = page.read_text(encoding="utf-8").splitlines(keepends=True)
        page.write_text("".join([*others, added]), encoding="utf-8")
        events = final_state.FinalState.of(yard).events
    assert events is not None
    assert [event["event"] for event in events if event["task"] == late.id] == ["added", "claimed", "done"]
    assert len(events) == 5
