"""The types of the table of routes, as msgspec has them: they check every request, and describe the API."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from taskyard.core.errors import Invalid
from taskyard.remote import routes

if TYPE_CHECKING:
    from taskyard.remote.routes import Fields, Route

_PLAIN: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "any": Any,
    "object": dict[str, Any],
    "duration": float | str,
}
_shapes: dict[str, Any] = {}


def of(text: str) -> Any:
    """Return the type that a text of the table means."""
    if text.endswith("?"):
        inner = of(text[:-1])
        return inner if inner is Any else inner | None
    if text[0] == "[":
        return list[of(text[1:-1])]  # type: ignore[misc]
    if text[0] == "{":
        return dict[str, of(text[1:-1])]  # type: ignore[misc]
    if text not in _PLAIN and text not in _shapes:
        _shapes[text] = _struct(text, routes.SHAPES[text])
    return _PLAIN.get(text) or _shapes[text]


def _struct(name: str, fields: Fields) -> type[msgspec.Struct]:
    """Return a record; a field with `?` may be left out, and it differs from null then."""
    return msgspec.defstruct(
        name,
        [
            (field, of(text) | msgspec.UnsetType, msgspec.UNSET) if text.endswith("?") and of(text) is not Any
            else (field, Any, msgspec.UNSET) if text.endswith("?")
            else (field, of(text))
            for field, text in sorted(fields.items(), key=lambda one: one[1].endswith("?"))
        ],
        forbid_unknown_fields=True,
    )  # fmt: skip


def _title(route: Route) -> str:
    return "".join(word.capitalize() for word in route.verb.split("_"))


ARGUMENTS = {route.verb: _struct(f"{_title(route)}Arguments", route.takes) for route in routes.ROUTES}
ANSWERS = {route.verb: _struct(f"{_title(route)}Answer", route.gives) for route in routes.ROUTES}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_SNAKE = {
    route.verb: {_camel(name): name for name in route.takes if "_" in name} for route in routes.ROUTES
}  # camelCase is accepted as well


_YARD_CHECKS = frozenset(("add", "add_many", "edit"))
"""Verbs whose arguments the yard checks as strictly itself, with better words."""
_RESERVED = frozenset(("self", "yard", "conn"))  # arguments of Python's verbs that are none of a request's


def read(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a request has; without a body an empty one."""
    try:
        content = json.loads(body) if body else {}
    except RecursionError:
        raise Invalid("the request is nested too deeply") from None
    except UnicodeDecodeError:
        raise Invalid("the request is not JSON: it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise Invalid(f"the request is not JSON: {error}") from None
    except ValueError:  # Python reads no longer ones
        raise Invalid(f"the request has a whole number of more than {sys.get_int_max_str_digits()} digits") from None
    if not isinstance(content, dict):
        raise Invalid("the request must be a JSON object")
    return content


def checked(route: Route, given: dict[str, Any], *, texts: bool) -> dict[str, Any]:
    """Return the arguments of a request, checked; only those that were given. From a query, all are `texts`."""
    snake = _SNAKE[route.verb]
    named = {snake.get(name, name): value for name, value in given.items()}
    for name, text in route.takes.items():
        if text.startswith("[str]") and isinstance(named.get(name), str):
            named[name] = [named[name]]  # one text, in place of a list of one
    if route.verb in _YARD_CHECKS and not _RESERVED & named.keys():
        return named
    try:
        struct = msgspec.convert(named, ARGUMENTS[route.verb], strict=not texts)
    except msgspec.ValidationError as error:
        raise Invalid(str(error)) from None
    except RecursionError:
        raise Invalid("the request is nested too deeply") from None
    return {name: named[name] if not texts else getattr(struct, name) for name in route.takes if name in named}
