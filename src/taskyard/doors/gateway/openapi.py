"""The OpenAPI 3.1 document, made of the same table and the same types that answer requests."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

import taskyard
from taskyard.doors.gateway import types
from taskyard.remote import routes, wire

if TYPE_CHECKING:
    from taskyard.remote.routes import Route

_REF = "#/components/schemas/{name}"


@cache
def document() -> dict[str, Any]:
    """Return the whole document."""
    structs = [*types.ARGUMENTS.values(), *types.ANSWERS.values()]
    _, schemas = msgspec.json.schema_components(structs, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes.ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    kept = {name: schema for name, schema in schemas.items() if not name.endswith("Arguments")}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Taskyard",
            "version": taskyard.__version__,
            "description": "Hand out work: every verb of a yard is one request. A path under /v1 is for the project `default`, "
            "and /{project}/v1 for any other.",
        },
        "servers": [{"url": "/"}, {"url": "/{project}", "variables": {"project": {"default": "default"}}}],
        "paths": paths,
        "components": {
            "schemas": {**kept, "Error": _error()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    fields = schemas[types.ARGUMENTS[route.verb].__name__]
    named = route.named()
    operation: dict[str, Any] = {
        "operationId": route.verb,
        "summary": route.about,
        "x-scope": route.scope,
        "parameters": [
            _parameter(name, schema, "path") for name, schema in fields["properties"].items() if name in named
        ],
        "responses": {"200": _answer(route), "default": _content("An error: its `code` tells which.", _ref("Error"))},
    }
    rest = {name: schema for name, schema in fields["properties"].items() if name not in named}
    if route.method == "GET":
        needed = fields.get("required", [])
        operation["parameters"] += [_parameter(name, schema, "query", name in needed) for name, schema in rest.items()]
        return operation
    body = {
        "type": "object",
        "properties": rest,
        "required": [name for name in fields.get("required", []) if name not in named],
        "additionalProperties": False,
    }
    operation["requestBody"] = {"required": True, **_body(body)}
    operation["parameters"].append(
        {
            "name": wire.KEY,
            "in": "header",
            "description": "A name of this request: sent again under the same name, it is the same request.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[A-Za-z0-9._-]+$"},
        }
    )
    return operation


def _parameter(name: str, schema: dict[str, Any], place: str, required: bool = True) -> dict[str, Any]:
    known = {one: value for one, value in schema.items() if one != "default"}
    options = [one for one in known.get("anyOf", ()) if one != {"type": "null"}]
    if options:
        known = options[0] if len(options) == 1 else {"anyOf": options}
    if place == "path":
        known = {**known, "minLength": 1}
    return {"name": name, "in": place, "required": required, "schema": known}


def _answer(route: Route) -> dict[str, Any]:
    envelope = {
        "type": "object",
        "properties": {
            "v": {"const": wire.VERSION},
            "ok": {"const": True},
            "data": _ref(types.ANSWERS[route.verb].__name__),
        },
        "required": ["v", "ok", "data"],
    }
    return _content("The answer.", envelope)


def _content(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, **_body(schema)}


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": _REF.format(name=name)}


def _error() -> dict[str, Any]:
    text = {"type": ["string", "null"]}
    return {
        "type": "object",
        "properties": {
            "v": {"const": wire.VERSION},
            "ok": {"const": False},
            "error": {
                "type": "object",
                "properties": {"code": {"enum": [*routes.STATUS]}, "message": {"type": "string"}, "hint": text},
                "required": ["code", "message"],
            },
        },
        "required": ["v", "ok", "error"],
    }
