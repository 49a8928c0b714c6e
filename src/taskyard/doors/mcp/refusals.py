"""From errors and wrong calls to refusals: the error family is mapped once, each with the next right call."""

from __future__ import annotations

from taskyard.core.errors import Invalid, TaskyardError
from taskyard.core.task import Handle
from taskyard.core.words import shown
from taskyard.doors.mcp import tools
from taskyard.doors.mcp.replies import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.mcp.claims import Claims, Held
    from taskyard.doors.mcp.tools import Toolset

ENDINGS = ("done", "fail", "release", "note")
_TYPES = {
    "string": ("a text", (str,)),
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "array": ("a list", (list,)),
    "object": ("an object", (dict,)),
}


def check(name: str, arguments: dict[str, Any], offered: Toolset = tools.OWN) -> None:
    """Raise `Refusal` for a tool or an argument that is not there, or has another type.

    None is as good as none, and so is an empty text where none is needed: some agents fill in every argument.
    """
    known = offered.arguments.get(name)
    if known is None:
        raise _no_tool(name, offered)
    for word, value in list(arguments.items()):
        if word not in known:
            raise _no_argument(name, word, offered)
        is_empty = value == "" and known[word].get("type") == "string" and word not in offered.required[name]
        if value is None or (is_empty and word != "claim"):  # an empty handle is a handle that was lost
            del arguments[word]
        else:
            _check_type(name, word, value, known[word])
    for word in offered.required[name]:
        if word not in arguments:
            raise Refusal(f"{name} needs {word}", f"{name}({word}=...)")


def _no_tool(name: str, offered: Toolset) -> Refusal:
    words = (
        name.lower().replace("-", "_").rpartition("taskyard_")[2].strip("_")
    )  # some clients put the server's name before it
    meant = words if words in offered.arguments else tools.OTHER_WORDS.get(words)
    if meant is None:
        return Refusal(f"there is no tool {shown(name)}", f"one of {', '.join(offered.arguments)}")
    return Refusal(f"there is no tool {shown(name)}; here that is {meant}", signature(meant, offered))


def _no_argument(name: str, word: str, offered: Toolset) -> Refusal:
    known = offered.arguments[name]
    meant = next((own for own in known if word.lower() in tools.OTHER_ARGUMENTS.get(own, "").split()), None)
    if meant is None:
        return Refusal(f"{name} has no argument {shown(word)}", signature(name, offered))
    return Refusal(f"{name} has no argument {shown(word)}; here that is {meant}", signature(name, offered))


def signature(name: str, offered: Toolset) -> str:
    """Return how a tool is called: `fail(reason, retry?, claim?)`."""
    required = offered.required[name]
    return f"{name}({', '.join(word if word in required else f'{word}?' for word in offered.arguments[name])})"


def _check_type(name: str, word: str, value: Any, schema: dict[str, Any]) -> None:
    if "type" not in schema:
        return
    called, types = _TYPES[schema["type"]]
    fits = isinstance(value, types) and (isinstance(value, bool) <= (bool in types))
    if fits and "items" in schema:
        kind = _TYPES[schema["items"]["type"]]
        called, fits = f"a list, each {kind[0]}", all(isinstance(each, kind[1]) for each in value)
    if not fits:
        raise Refusal(f"{word} must be {called}, not {shown(value)}", f"{name} again, with {word} as {called}")
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and not least <= value <= most:
        raise Refusal(
            f"{word} must be between {least} and {most}, not {shown(value)}", f"{name} again, with a {word} in between"
        )


def chosen(given: str | None, verb: str, claims: Claims) -> Held | Handle:
    """Return the claim that a call is about: the one that is named, else the only one; raise `Refusal` if that is unclear."""
    if given is not None:
        held = claims.get(given)
        return held if held is not None else _named(given, verb, claims)
    held_now = claims.all()
    if len(held_now) == 1:
        return held_now[0]
    if held_now:
        each = "; ".join(f"{verb}(claim={held.handle!a}) is {held.name}" for held in held_now[:5])
        raise Refusal(f"you hold {len(held_now)} claims, so name one", each)
    lost = claims.last_lost()
    if lost is not None:
        return lost  # the yard refuses the call, and keeps what it brings for a person to read
    raise Refusal("you hold no claim here", "claim() takes a task; resume() if you were working on one before")


def _named(given: str, verb: str, claims: Claims) -> Handle:
    """Return a handle that this server does not hold: an agent may bring one from a server before this."""
    try:
        return Handle.parse(given)
    except Invalid as malformed:
        for held in claims.all():
            if given in (held.id, held.name.split(" ")[0]) or (len(given) > 6 and held.handle.startswith(given)):
                raise Refusal(
                    f"{shown(given)} is not the handle of a claim; you hold that task under another word",
                    f"{verb}(claim={held.handle!a}), or leave claim out",
                ) from None
        held_now = claims.all()
        raise Refusal(
            malformed.message, _yours(verb, held_now[0]) if len(held_now) == 1 else _from_claim(verb)
        ) from None


def refusal(error: TaskyardError, verb: str, handle: str | None, claims: Claims) -> Refusal:
    """Return the refusal for an error of the yard."""
    hint = error.hint
    if hint is not None and ("taskyard" in hint.lower() or "--" in hint):
        hint = None  # it names commands of a shell, and an agent has tools
    message = error.message if hint is None else f"{error.message} ({hint})"
    return Refusal(message, _next(error, verb, handle, claims))


def _next(error: TaskyardError, verb: str, handle: str | None, claims: Claims) -> str:
    if error.code == "unavailable":
        return f"{verb} again in a minute; what you hold stays yours while the yard is away"
    if error.code == "stuck":
        return "show(task) on the one that failed; a person decides whether it is retried"
    if verb in ENDINGS and handle is not None:
        return _next_ending(error.code, verb, handle, claims)
    if error.code in ("not_found", "ambiguous"):
        return "ready() lists tasks by the names that show, claim and wait take"
    if error.code == "conflict" and verb == "claim":
        return "claim() takes another task; show(task) tells where that one stands"
    return f"{verb} again, put right"


def _next_ending(code: str, verb: str, handle: str, claims: Claims) -> str:
    if code == "invalid" and claims.get(handle) is not None:
        return f"{verb} again, put right"
    if code == "conflict" and claims.get(handle) is not None:
        return "put that right, then done(result) again; you still hold the task, and fail(reason) gives it up"
    held = claims.all()
    now = claims.on(handle.split(".", maxsplit=1)[0]) or (held[0] if len(held) == 1 and code != "claim_lost" else None)
    if now is not None and now.handle != handle:
        return _yours(verb, now)
    if code == "claim_lost":
        return "stop that work; claim() takes another task, resume() lists what is still yours"
    if code == "conflict":
        return "leave that task; claim() takes the next"
    return _from_claim(verb)


def _yours(verb: str, held: Held) -> str:
    return f"{verb}(claim={held.handle!a}) is your claim on {held.name}; or leave claim out"


def _from_claim(verb: str) -> str:
    return f"{verb} with the 'claim' that claim() answered; resume() if that is lost"
