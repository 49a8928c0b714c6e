"""A yard in a directory, and processes that never outlive their test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.processes import tools

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator


@pytest.fixture
def crew() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts members of a crew, as `tools.start` does, and ends those that are left."""
    members: list[subprocess.Popen[str]] = []

    def call(*args: str, **more: object) -> subprocess.Popen[str]:
        members.append(tools.start(*args, **more))  # type: ignore[arg-type]
        return members[-1]

    yield call
    for member in members:
        member.kill()
        member.communicate()
