"""A PostgreSQL yard's URL: Taskyard's own parameters, and those passed to libpq."""

from __future__ import annotations

import os

from taskyard.core import words
from taskyard.core.errors import Invalid

SCHEMES = ("postgresql", "postgres")
PROJECT = "default"
VALKEY_SCHEMES = ("valkey", "valkeys", "redis", "rediss", "unix")
# libpq's parameters that hold no secret. A name that is not listed is not shown: a new release may add a secret.
_PUBLIC = frozenset((
    "application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname", "fallback_application_name",
    "gssdelegation", "gssencmode", "gsslib", "host", "hostaddr", "keepalives", "keepalives_count", "keepalives_idle",
    "keepalives_interval", "krbsrvname", "load_balance_hosts", "max_protocol_version", "min_protocol_version",
    "oauth_client_id", "oauth_issuer", "oauth_scope", "passfile", "port", "replication", "require_auth", "requirepeer",
    "service", "ssl_max_protocol_version", "ssl_min_protocol_version", "sslcert", "sslcertmode", "sslcompression", "sslcrl",
    "sslcrldir", "sslkey", "sslkeylogfile", "sslmode", "sslnegotiation", "sslrootcert", "sslsni", "target_session_attrs",
    "tcp_user_timeout", "user",
))  # fmt: skip
# What says where a database is beside the URL's own place, and the environment that libpq reads for it.
_ENVIRONMENT = {
    "host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT", "dbname": "PGDATABASE", "user": "PGUSER", "service": "PGSERVICE"
}  # fmt: skip
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-~")
HINT = "write postgresql://user@host:5432/database?project=NAME, with what is special in it percent-encoded"


class Address:
    """Where a project is: its name, how to connect, and a label without secrets."""

    __slots__ = ("_own", "conninfo", "label", "listen", "pooler", "project", "url", "valkey")

    def __init__(self, url: str) -> None:
        self.url = url
        _check_characters(url)
        base, _, query = url.partition("?")
        own: dict[str, str] = {}
        rest: list[tuple[str, str]] = []
        _check_base(base)
        for name, value in (_pair(part) for part in query.split("&") if part):
            if name in own:
                raise Invalid(f"{name}= is there twice in the URL", hint="say it once")
            if name in ("project", "valkey", "pooler", "listen"):
                own[name] = value
            else:
                rest.append((name, value))
        self.project = words.text(own.get("project", PROJECT), "project", words.ENCODED_MOST)
        self.pooler = _pooler(own.get("pooler", "none"))
        self.listen = _listen(own.get("listen"), self.pooler)
        self.valkey = _valkey(own["valkey"]) if "valkey" in own else None
        self._own = own
        self.conninfo = _joined(base, rest)
        project = [] if self.project == PROJECT else [("project", self.project)]
        public = [pair for pair in rest if pair[0] in _PUBLIC]
        self.label = _joined(_without_password(base), [*public, *project])

    def beside(self, project: str) -> str:
        """Return the URL of another project in the same database, with the same connection parameters."""
        own = {**self._own, "project": project}
        words = "&".join(f"{name}={_quoted(value, '/')}" for name, value in own.items())
        return f"{self.conninfo}{'&' if '?' in self.conninfo else '?'}{words}"

    @property
    def identity(self) -> str:
        """The same for all URLs of one project and role, whatever else they say; no secret is in it."""
        base, _, query = self.conninfo.partition("?")
        given = dict(_pair(part) for part in query.split("&") if part)
        named = {name: given.get(name) or os.environ.get(variable, "") for name, variable in _ENVIRONMENT.items()}
        place = _without_password(base).partition("://")[2]
        return "|".join((place, *named.values(), self.project))

    @property
    def where(self) -> str:
        """The database, for messages."""
        return self.label.partition("?")[0]


# urllib takes 2 ms to load, and few URLs have anything to encode.


def _quoted(text: str, safe: str = "") -> str:
    """Percent-encode what is special, and the slash unless it is `safe`."""
    if _PLAIN.issuperset(text.replace("/", "") if safe else text):
        return text
    from urllib.parse import quote

    return quote(text, safe=safe)


def _unquoted(text: str) -> str:
    """Decode what is percent-encoded; raise `UnicodeDecodeError` if that is no UTF-8."""
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text, errors="strict")


def _pair(part: str) -> tuple[str, str]:
    name, _, value = part.partition("=")
    if "@" in name:
        raise _unencoded("?")
    try:
        name, value = _unquoted(name), _unquoted(value)
    except UnicodeDecodeError:
        raise Invalid("what is percent-encoded in the URL is no UTF-8", hint=HINT) from None
    if name == "port":
        _check_ports(value.split(","))
    return name, value


def _check_characters(url: str) -> None:
    """Refuse what libpq would cut off or cannot be given: a NUL, and bytes of the environment that are no UTF-8."""
    if "\0" in url or any("\ud800" <= letter <= "\udfff" for letter in url):
        raise Invalid("the URL has a character that is no text", hint=HINT)


def _check_base(base: str) -> None:
    """Refuse unencoded passwords: libpq would print part of one as a host."""
    authority, _, path = base.partition("://")[2].partition("/")
    user, _, hosts = authority.rpartition("@")
    if "@" in path:
        raise _unencoded("/")
    if "@" in user:
        raise _unencoded("@")
    _check_ports(
        [host.rpartition("]")[2].rpartition(":")[2] for host in hosts.split(",") if ":" in host.rpartition("]")[2]]
    )


def _check_ports(ports: list[str]) -> None:
    if not all(port == "" or (port.isascii() and port.isdigit() and 0 < int(port) < 65536) for port in ports):
        raise Invalid("the port in the URL is no number from 1 to 65535", hint=HINT)


def _unencoded(mark: str) -> Invalid:
    return Invalid(f"the URL has a {mark} before an @: in a password that has to be %{ord(mark):X}", hint=HINT)


def _joined(base: str, pairs: list[tuple[str, str]]) -> str:
    query = "&".join(f"{_quoted(name)}={_quoted(value, '/')}" for name, value in pairs)
    return f"{base}?{query}" if query else base


def _without_password(base: str) -> str:
    scheme, _, rest = base.partition("://")
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    return f"{scheme}://{user.partition(':')[0]}{at}{host}{slash}{path}"


def _pooler(value: str) -> str | None:
    """Return the sort of pooler that the URL names; None if it names none, and each connect has to detect it."""
    if value not in ("none", "session", "transaction"):
        raise Invalid(
            f"not a sort of pooler: {value!a}",
            hint="say pooler=transaction behind one that pools transactions, pooler=session behind one of sessions, else nothing",
        )
    return None if value == "none" else value


def _valkey(value: str) -> str:
    """Return the URL of a Valkey server, checked as far as that goes without a connection."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(value)
        is_whole = bool(parts.path if parts.scheme == "unix" else parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        is_whole = False
    if not is_whole or parts.scheme not in VALKEY_SCHEMES:
        raise Invalid(
            "valkey= is not the URL of a Valkey server",
            hint="write valkey://user:password@host:6379/0, valkeys:// or rediss:// with TLS, or unix:///path,"
            " and percent-encode all of it",
        )
    return value


def _listen(value: str | None, pooler: str | None) -> str | None:
    """Where to LISTEN: "" for the same address, another address, or None for not at all."""
    if value is None:
        return None if pooler == "transaction" else ""
    if value == "off":
        return None
    if value.partition("://")[0] in SCHEMES:
        return value
    raise Invalid(
        f"listen= is neither off nor the URL of a database: {value[:20]!a}...", hint=f"say listen=off, or {HINT}"
    )
