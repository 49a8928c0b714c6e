"""`settings`: print the yard's settings, or change some."""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.doors.cli.parser import Command
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def settings(call: Call) -> Reply:
    """Print all settings; with NAME=VALUE, change these first."""
    words = call.given.words
    now = call.yard.set_settings(_changes(words)) if words else call.yard.settings()
    return Reply({"settings": now}, lambda: _page(now))


def _changes(words: Sequence[str]) -> dict[str, Any]:
    """Return the changes that these words name; the limits of a kind, and checks, have names with dots."""
    changes: dict[str, Any] = {}
    for word in words:
        path, sign, text = word.partition("=")
        if not sign:
            raise Invalid(f"{word!a} is no NAME=VALUE", hint="such as max_todo=1000; NAME= takes a setting back")
        *above, name = _names(path)
        place = changes
        for part in above:
            place = place.setdefault(part, {})
        place[name] = _value(text)
    return changes


def _names(path: str) -> list[str]:
    """Return the parts of a setting's name; a kind may have dots of its own."""
    group, _, rest = path.partition(".")
    if group == "kinds" and "." in rest:
        return [group, *rest.rsplit(".", 1)]
    return [group, rest] if rest else [group]


def _value(text: str) -> Any:
    """Return a value that is written as JSON, or else as a plain word; None for an empty one."""
    import json

    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def _page(found: dict[str, Any]) -> str:
    from taskyard.core.settings import defaults
    from taskyard.doors.cli import output

    usual = defaults()
    rows = []
    for name, value in found.items():
        for path, each in _leaves(name, value):
            mark = "  (default)" if name in usual and value == usual[name] else ""
            rows.append(f"{path} = {_shown(each)}{mark}")
    return output.plain("\n".join(rows))


def _leaves(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return each value within a setting, with its whole name."""
    if not isinstance(value, dict) or not value:
        return [(name, value)]
    return [leaf for part, each in value.items() for leaf in _leaves(f"{name}.{part}", each)]


def _shown(value: Any) -> str:
    import json

    if value is None or value == {}:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


COMMANDS = {
    "settings": Command(
        settings,
        "Print the yard's settings, or change some and print them all. NAME= takes one back to its default. The limits of a kind are named kinds.KIND.concurrency "
        "(how many can be worked on at a time), kinds.KIND.rate (how many can be claimed in any minute) and kinds.KIND.max_todo. Workers heed a change within "
        "seconds; the durability counts where the yard is opened next. A setting that cannot be is exit 2, and nothing is changed.",
        (
            ("taskyard settings", "all of them, with the defaults marked"),
            (
                "taskyard settings kinds.build.concurrency=2",
                "never more than two builds at a time, by all workers together",
            ),
            (
                "taskyard settings kinds.summarize.rate=60 ageing=3600",
                "60 a minute, for a model's API; and old tasks come first",
            ),
            ("taskyard settings kinds.build.concurrency=", "as many builds as there are workers"),
            (
                "taskyard settings --json",
                '{"settings": {"durability": "durable", "max_attempts": 3, ..., "kinds": {"build": {"concurrency": 2}}}}',
            ),
        ),
        words="[NAME=VALUE...]",
        most=None,
    ),
}
