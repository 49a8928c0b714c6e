"""One family of errors, exported, each with its message and its code."""

from __future__ import annotations

import inspect

import pytest

import taskyard
from taskyard.core import errors

FAMILY = [
    member for _, member in inspect.getmembers(errors, inspect.isclass) if issubclass(member, taskyard.TaskyardError)
]


def test_the_exported_members_are_these() -> None:
    assert sorted(taskyard.__all__) == taskyard.__all__
    assert set(taskyard.__all__) >= {"Claim", "State", "Task", "Yard", "init", "open"}
    assert all(hasattr(taskyard, name) for name in taskyard.__all__)


@pytest.mark.parametrize("error", FAMILY)
def test_every_error_is_exported_and_stands_in_the_drawing(error: type[taskyard.TaskyardError]) -> None:
    assert getattr(taskyard, error.__name__) is error
    assert error.__name__ in taskyard.__all__
    assert error.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize("error", FAMILY)
def test_the_docstring_is_the_message_unless_another_is_given(error: type[taskyard.TaskyardError]) -> None:
    assert str(error()) == error().message == error.__doc__
    told = error("the roof is on fire", hint="leave")
    assert (str(told), told.message, told.hint) == ("the roof is on fire", "the roof is on fire", "leave")


def test_the_codes_are_what_machines_know() -> None:
    codes = {error.__name__: error.code for error in FAMILY}
    assert codes == {
        "Ambiguous": "ambiguous",
        "Away": "unavailable",
        "Stuck": "stuck",
        "ClaimLost": "claim_lost",
        "Conflict": "conflict",
        "Invalid": "invalid",
        "Denied": "denied",
        "Full": "full",
        "NoYard": "invalid",
        "NotFound": "not_found",
        "TaskyardError": "internal",
        "TimedOut": "timed_out",
        "Unavailable": "unavailable",
    }


def test_the_common_refusals_say_what_to_do_next() -> None:
    assert taskyard.ClaimLost().hint
    assert taskyard.NoYard().hint
