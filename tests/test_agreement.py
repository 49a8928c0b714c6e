"""What has to stand in several places is the same in each: events, defaults, error codes."""

from __future__ import annotations

import re
from pathlib import Path

import taskyard
from taskyard.core.retry import Policy
from taskyard.core.yard_events import TEAM_EVENTS
from taskyard.remote.routes import STATUS
from taskyard.stores.directory.fsck import log
from taskyard.yard import arguments

from .test_protocol import EVENTS, ROOT

SHELL = Path(taskyard.__file__).parent / "doors" / "sh" / "parts"


def test_every_event_is_known_to_readers_of_the_log_to_fsck_and_to_the_protocol() -> None:
    led_to = {name.removesuffix(" for good") for name in log.LEADS} - {"taken back"}
    assert set(arguments.EVENTS) - {*TEAM_EVENTS} == led_to | {*log.SILENT} == {row[0] for row in EVENTS}


def test_the_shell_client_has_the_defaults_of_python() -> None:
    policy = Policy()
    milliseconds = {name: round(getattr(policy, name) * 1000) for name in ("backoff", "backoff_cap", "lease")}
    plainly = dict(re.findall(r"_ty_set_(\w+)=(\d+)", (SHELL / "04-yard.sh").read_text()))
    by_awk = dict(re.findall(r'number\("(\w+)", (\d+),', (SHELL / "13-settings.sh").read_text()))
    expected = {"max_attempts": policy.max_attempts, "max_crashes": policy.max_crashes, **milliseconds}
    short = {"max_attempts": "attempts", "max_crashes": "crashes", "backoff_cap": "cap"}
    assert {name: int(by_awk[name]) for name in expected} == expected
    assert {name: int(plainly[short.get(name, name)]) for name in expected} == expected


def test_the_page_of_leases_names_the_default_backoff() -> None:
    policy = Policy()
    page = (ROOT / "docs" / "leases.md").read_text()
    assert f"waits {policy.backoff:g} s, then {2 * policy.backoff:g} s" in page
    assert f"up to {policy.backoff_cap / 60:g} minutes" in page


def test_the_page_of_the_gateway_has_the_status_of_every_error_code() -> None:
    text = (ROOT / "docs" / "gateway.md").read_text()
    rows = text.partition("| status | error code |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    told = [
        (status, code)
        for row in rows
        for status in re.findall(r"\d{3}", row)
        for code in re.findall(r"`([a-z_]+)`", row)
    ]
    assert [(code, status) for code, status in STATUS.items() if (str(status), code) not in told] == []
