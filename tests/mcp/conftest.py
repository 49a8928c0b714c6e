"""An agent that calls tools in this process, on each store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from taskyard.doors.mcp.agent import Agent

if TYPE_CHECKING:
    from taskyard import Yard


class Caller:
    """Calls tools and reads only the first line of what they answer."""

    def __init__(self, yard: Yard, lent: str | None = None) -> None:
        self.agent = Agent(yard, lent=lent)

    def call(self, name: str, **arguments: Any) -> Any:
        """The answer of a call that must succeed."""
        text, refused = self.agent.call(name, arguments)
        assert not refused, text
        return json.loads(text.splitlines()[0])

    def refused(self, name: str, **arguments: Any) -> str:
        """The refusal of a call that must be refused; it says what to do next, and nothing destructive."""
        text, refused = self.agent.call(name, arguments)
        assert refused, text
        assert "\n" not in text
        assert ". Next: " in text
        assert "taskyard " not in text.lower()
        assert "--" not in text
        return text


@pytest.fixture
def caller(yard: Yard) -> Caller:
    return Caller(yard)
