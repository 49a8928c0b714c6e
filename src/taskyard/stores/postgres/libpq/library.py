"""The shared library libpq: the one that psycopg's wheel brings, else the system's.

Nothing here imports psycopg: that takes three times as long as a whole command (`taskyard.stores.postgres.libpq`).
"""

from __future__ import annotations

import ctypes
import os
import select
from ctypes import POINTER, c_char_p, c_int, c_void_p
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_OLDEST = 170000  # PQcancelStart, by which a cancel is encrypted and may be given up
_SYSTEM = ("libpq.so.5", "libpq.5.dylib")


class ConninfoOption(ctypes.Structure):
    """`PQconninfoOption`: one parameter of a connection."""

    _fields_ = (
        ("keyword", c_char_p),
        ("envvar", c_char_p),
        ("compiled", c_char_p),
        ("val", c_char_p),
        ("label", c_char_p),
        ("dispchar", c_char_p),
        ("dispsize", c_int),
    )


class Notify(ctypes.Structure):
    """`PGnotify`, as far as it is read here."""

    _fields_ = (("relname", c_char_p),)


_CONNECTION = _RESULT = c_void_p
_TEXTS = POINTER(c_char_p)
# What each function returns, and its arguments.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "PQlibVersion": (c_int,),
    "PQconninfoParse": (POINTER(ConninfoOption), c_char_p, POINTER(c_void_p)),
    "PQconninfoFree": (None, POINTER(ConninfoOption)),
    "PQfreemem": (None, c_void_p),
    "PQconnectStartParams": (_CONNECTION, _TEXTS, _TEXTS, c_int),
    "PQconnectPoll": (c_int, _CONNECTION),
    "PQsetnonblocking": (c_int, _CONNECTION, c_int),
    "PQsetNoticeProcessor": (c_void_p, _CONNECTION, c_void_p, c_void_p),
    "PQfinish": (None, _CONNECTION),
    "PQstatus": (c_int, _CONNECTION),
    "PQtransactionStatus": (c_int, _CONNECTION),
    "PQsocket": (c_int, _CONNECTION),
    "PQhost": (c_char_p, _CONNECTION),
    "PQport": (c_char_p, _CONNECTION),
    "PQserverVersion": (c_int, _CONNECTION),
    "PQbackendPID": (c_int, _CONNECTION),
    "PQparameterStatus": (c_char_p, _CONNECTION, c_char_p),
    "PQerrorMessage": (c_char_p, _CONNECTION),
    "PQsendQuery": (c_int, _CONNECTION, c_char_p),
    "PQsendQueryParams": (
        c_int, _CONNECTION, c_char_p, c_int, POINTER(ctypes.c_uint), _TEXTS, POINTER(c_int), POINTER(c_int), c_int
    ),
    "PQflush": (c_int, _CONNECTION),
    "PQconsumeInput": (c_int, _CONNECTION),
    "PQisBusy": (c_int, _CONNECTION),
    "PQgetResult": (_RESULT, _CONNECTION),
    "PQclear": (None, _RESULT),
    "PQresultStatus": (c_int, _RESULT),
    "PQresultErrorMessage": (c_char_p, _RESULT),
    "PQresultErrorField": (c_char_p, _RESULT, c_int),
    "PQntuples": (c_int, _RESULT),
    "PQnfields": (c_int, _RESULT),
    "PQftype": (ctypes.c_uint, _RESULT, c_int),
    "PQgetisnull": (c_int, _RESULT, c_int, c_int),
    "PQgetvalue": (c_char_p, _RESULT, c_int, c_int),
    "PQnotifies": (POINTER(Notify), _CONNECTION),
    "PQputCopyData": (c_int, _CONNECTION, c_char_p, c_int),
    "PQputCopyEnd": (c_int, _CONNECTION, c_char_p),
    "PQcancelCreate": (c_void_p, _CONNECTION),
    "PQcancelStart": (c_int, c_void_p),
    "PQcancelPoll": (c_int, c_void_p),
    "PQcancelSocket": (c_int, c_void_p),
    "PQcancelErrorMessage": (c_char_p, c_void_p),
    "PQcancelFinish": (None, c_void_p),
}  # fmt: skip
_found: list[Any] = []


def load() -> Any:
    """Return the library, loaded once; None if there is none that fits, and psycopg is to be used."""
    if not _found:
        _found.append(next(_fitting(), None))
    return _found[0]


def _fitting() -> Iterator[Any]:
    if PathFinder.find_spec("psycopg") is None or not hasattr(select, "poll"):
        return  # what is missing is said in one way, by `driver.module`
    for path in _candidates():
        try:
            library: Any = ctypes.CDLL(path)
            for name, (result, *arguments) in _FUNCTIONS.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, arguments
            # A system may forbid the memory that a callback needs.
            library.be_quiet = _SILENT(lambda *_: None)
        except (OSError, AttributeError, MemoryError):
            continue  # it is missing, of another machine, or too old
        if library.PQlibVersion() >= _OLDEST:
            yield library


def _candidates() -> Iterator[str]:
    """Yield where libpq may be; whoever chooses psycopg's implementation wants the library of that one."""
    wheel = PathFinder.find_spec("psycopg_binary")
    if wheel is not None and wheel.origin is not None and os.environ.get("PSYCOPG_IMPL") in (None, "", "binary"):
        package = os.path.dirname(wheel.origin)
        for folder in (f"{package}.libs", os.path.join(package, ".dylibs")):
            try:
                names = os.listdir(folder)
            except OSError:
                continue
            yield from (os.path.join(folder, name) for name in sorted(names) if name.startswith("libpq"))
    yield from _SYSTEM


_SILENT = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
