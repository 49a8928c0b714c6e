"""Hostile input is tried as a plain user, whose permissions count, also where root runs the tests."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.hostile import imports, verbs

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = 65534
DEEP = int(
    os.environ.get("TASKYARD_FUZZ", "0")
)  # examples of each test, for a long run; the seed is another one each time
PLAIN_CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


def examples(number: int) -> settings:
    """So many examples, the same ones in every run; or as many as were asked for, and new ones."""
    return settings(
        max_examples=DEEP or number,
        derandomize=not DEEP,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=PLAIN_CHECKS,
        phases=(Phase.explicit, Phase.generate),  # to shrink a failure takes minutes; the notes tell what was done
    )


@pytest.fixture(scope="session")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Everything that a test may import as another user, and what Python itself loads when that is used."""
    imports.load()
    verbs.use(verbs.Yard(tmp_path_factory.mktemp("loaded") / "yard"))


@pytest.fixture
def context(loaded: None) -> Iterator[Path]:
    """A folder of a plain user's, and the tests as that user."""
    folder = Path(tempfile.mkdtemp(prefix="taskyard-hostile-"))
    root = os.geteuid() == 0
    if root:
        os.chown(folder, NOBODY, NOBODY)
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
    try:
        with imports.closed():
            yield folder
    finally:
        if root:
            os.seteuid(0)
            os.setegid(0)
        shutil.rmtree(folder, ignore_errors=True)
