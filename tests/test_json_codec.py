"""`json_codec` reads and writes what the json package does, and raises what it raises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import taskyard
from taskyard.core import json_codec

VALUES: list[Any] = [
    None, True, 0, -1.5, 1e300, 2**70, "", "a\n\t\"\\ \u2028 \u00fc \U0001f600", [], {}, [[], [1, [2]]],
    {"a": 1, "b": {"c": [None, False]}, "\u00fc": "x" * 300}, {2: 2, None: 3, True: 4}, (1, 2),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_it_writes_what_the_package_writes_and_reads_that_back(value: Any) -> None:
    compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    spaced = json.dumps(value, ensure_ascii=False)
    assert (json_codec.compact(value), json_codec.encode(value)) == (compact, spaced)
    assert json_codec.decode(spaced.encode()) == json_codec.whole(f" {compact}\r\n\t") == json.loads(compact)


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize("value", [{1, 2}, object(), CIRCLE, float("nan"), [float("inf")]], ids=range(5))
def test_it_refuses_what_the_package_refuses(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        json.dumps(value, allow_nan=False)
    with pytest.raises(refused.type) as raised:
        json_codec.compact(value)
    assert str(raised.value) == str(refused.value)


@pytest.mark.parametrize(
    "content", [b"", b" ", b"{", b"{} {}", b"nul", b"[1,]", b'{"a":1,}', b"\xff", b'"\n"', b"01"], ids=repr
)
def test_what_is_no_json_raises_the_error_of_the_package_with_its_place(content: bytes) -> None:
    with pytest.raises(ValueError) as meant:  # noqa: PT011  the message is compared
        json.loads(content)
    with pytest.raises(meant.type) as raised:
        json_codec.decode(content)
    assert str(raised.value) == str(meant.value)


def test_it_reads_other_encodings_and_a_byte_order_mark_as_the_package_does() -> None:
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        assert json_codec.decode('{"a": "\u00fc"}'.encode(encoding)) == {"a": "\u00fc"}


def test_a_scanner_has_its_own_rules_for_numbers() -> None:
    def refuse(name: str) -> Any:
        raise ValueError(name)

    scan = json_codec.scanner(len, refuse)
    assert scan("[1.25,3]", 0) == ([4, 3], 8)
    with pytest.raises(ValueError, match="NaN"):
        scan("[NaN]", 0)


ALONE = """
import sys
from taskyard.core import json_codec
assert "json" not in sys.modules
for text in ('{"a"', "[1", '"', "{", '{"a":1,}'):
    for read in (lambda: json_codec.scan(text, 0), lambda: json_codec.decode(text.encode())):
        for name in [name for name in sys.modules if name.startswith("json")]:
            del sys.modules[name]
        try:
            read()
        except ValueError as error:
            print(type(error).__name__, error)
"""


def test_what_is_no_json_raises_the_same_where_the_package_is_not_loaded_yet() -> None:
    run = subprocess.run([sys.executable, "-S", "-c", ALONE], capture_output=True, text=True, check=False, env=_found())
    assert run.stderr == ""
    lines = run.stdout.splitlines()
    assert len(lines) == 10
    assert all(line.startswith("JSONDecodeError ") and "char" in line for line in lines)


def _found() -> dict[str, str]:
    """The environment in which `python -S` finds the package."""
    return {**os.environ, "PYTHONPATH": str(Path(taskyard.__file__).parents[1])}
