"""Both drivers name the same types, and return the same values."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer

from taskyard.core.task import State
from taskyard.stores.postgres.libpq import values
from taskyard.stores.postgres.libpq.errors import Error

if TYPE_CHECKING:
    from taskyard.stores.postgres.libpq.connection import LibpqConnection
    from taskyard.stores.postgres.watched_connection import WatchedConnection

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
INTEGERS = st.integers() | st.sampled_from(
    [sign * (1 << bits) + off for sign in (1, -1) for bits in (15, 31, 63) for off in (-1, 0, 1)]
)
FLOATS = st.floats(allow_nan=False)
PARAMETERS = (
    st.none() | st.booleans() | INTEGERS | FLOATS | TEXTS | st.sampled_from(State)
    | st.lists(st.none() | TEXTS) | st.lists(st.none() | INTEGERS) | st.lists(st.none() | st.booleans()) | st.lists(st.none() | FLOATS)
)  # fmt: skip
TYPES = {
    "text": TEXTS, "text[]": st.lists(st.none() | TEXTS), "bigint": st.integers(-(1 << 63), (1 << 63) - 1),
    "int": st.integers(-(1 << 31), (1 << 31) - 1), "bool": st.booleans(), "float8": FLOATS,
    "bigint[]": st.lists(st.none() | st.integers(-(1 << 63), (1 << 63) - 1)), "bool[]": st.lists(st.none() | st.booleans()),
}  # fmt: skip
HARD = (
    "",
    " ",
    "NULL",
    "null",
    '"',
    "\\",
    '\\"',
    "{}",
    "{a,b}",
    ",",
    "a\tb\nc\rd",
    "é 漢 🦉 \U0010ffff",
    "\x01\x7f",
    "%(x)s %% $1",
    "x" * (1 << 20),
)


@given(PARAMETERS)
def test_a_parameter_has_the_type_that_psycopg_gives_it(value: Any) -> None:
    transformer = Transformer()
    transformer.dump_sequence([value], [PyFormat.AUTO])
    assert transformer.types is not None
    [oid], [text] = values.parameters(["x"], {"x": value})
    assert oid == transformer.types[0]
    assert (text is None) == (value is None)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_value_comes_back_as_it_went(brief: LibpqConnection, lasting: WatchedConnection, data: st.DataObject) -> None:
    sort = data.draw(st.sampled_from(sorted(TYPES)))
    given_value = data.draw(st.none() | TYPES[sort])
    statement = f"SELECT %(x)s::{sort}"
    [(answer,)] = brief.rows(statement, {"x": given_value})
    assert [(answer,)] == lasting.rows(statement, {"x": given_value})
    assert answer == given_value
    assert type(answer) is type(given_value)


@pytest.mark.parametrize("text", HARD, ids=lambda text: ascii(text)[:20])
def test_hard_texts_come_back_alone_in_arrays_in_json_and_by_copy(
    brief: LibpqConnection, lasting: WatchedConnection, text: str
) -> None:
    statement = "SELECT %(x)s::text, %(many)s::text[], to_json(%(x)s::text), to_jsonb(%(many)s::text[]), %(x)s::varchar"
    given_values = {"x": text, "many": [text, None, text, ""]}
    [row] = brief.rows(statement, given_values)
    assert [row] == lasting.rows(statement, given_values)
    assert row == (text, given_values["many"], text, given_values["many"], text)
    for connection in (brief, lasting):
        connection.rows("CREATE TEMPORARY TABLE hard (x text, many text[], n bigint, b bool, f float8)", {})
        connection.copy(
            "COPY hard FROM STDIN", [(text, given_values["many"], 1 << 62, True, 0.1), (None, [], None, None, None)] * 3
        )
        assert connection.rows("SELECT * FROM hard WHERE x IS NOT NULL LIMIT 1", {}) == [
            (text, given_values["many"], 1 << 62, True, 0.1)
        ]
        assert connection.rows("SELECT count(*), count(x), sum(cardinality(many)) FROM hard", {}) == [(6, 3, 12)]


def test_many_rows_go_by_copy(brief: LibpqConnection) -> None:
    brief.rows("CREATE TEMPORARY TABLE many (n int, x text)", {})
    brief.copy("COPY many FROM STDIN", ((n, "x" * 1000) for n in range(20_000)))
    assert brief.rows("SELECT count(*), sum(n), sum(length(x)) FROM many", {}) == [(20_000, 199_990_000, 20_000_000)]


def test_a_copy_that_fails_leaves_a_connection_that_works(brief: LibpqConnection) -> None:
    brief.rows("CREATE TEMPORARY TABLE few (n int)", {})
    with pytest.raises(Error, match="invalid input syntax"):
        brief.copy("COPY few FROM STDIN", [("no number",)])
    with pytest.raises(ZeroDivisionError):
        brief.copy("COPY few FROM STDIN", ((1 // n,) for n in (1, 0)))
    brief.rows("ALTER TABLE few ADD CHECK (n < 1000)", {})
    with pytest.raises(Error, match="violates check") as refused:
        brief.copy("COPY few FROM STDIN", ((n,) for n in range(1_000_000)))
    assert refused.value.sqlstate == "23514"
    assert brief.is_idle
    assert brief.rows("SELECT count(*) FROM few", {}) == [(0,)]


def test_json_with_numbers_of_any_size_and_lone_surrogates_comes_back_exactly(
    brief: LibpqConnection, lasting: WatchedConnection
) -> None:
    text = '{"n": 123456789012345678901234567890, "f": 0.1, "e": 1e400, "s": "\\ud800", "deep": [[[null]]]}'
    statement = "SELECT %(x)s::json, %(x)s::text"
    assert brief.rows(statement, {"x": text}) == lasting.rows(statement, {"x": text})


@pytest.mark.parametrize("number", [0.1, 1e-320, 1.7976931348623157e308, float("inf"), float("-inf"), -0.0])
def test_floats_come_back_to_the_bit(brief: LibpqConnection, number: float) -> None:
    [(answer,)] = brief.rows("SELECT %(x)s::float8", {"x": number})
    assert struct.pack("d", answer) == struct.pack("d", number)


@pytest.mark.parametrize("value", ["a\0b", ["a\0b"], b"bytes", object(), (1, 2)])
def test_what_cannot_be_sent_is_refused_and_nothing_is_sent(brief: LibpqConnection, value: Any) -> None:
    with pytest.raises(Error, match=r"NUL|cannot be sent"):
        brief.rows("SELECT %(x)s::text", {"x": value})
    with pytest.raises(UnicodeEncodeError):
        brief.rows("SELECT %(x)s::text", {"x": "\ud800"})
    assert brief.rows("SELECT 1", {}) == [(1,)]


@pytest.mark.parametrize(
    "expression", ["1.5::numeric", "now()", "'\\x00'::bytea", "'{{1,2},{3,4}}'::int[]", "'1'::xid"]
)
def test_a_type_that_is_not_read_here_is_refused(brief: LibpqConnection, expression: str) -> None:
    with pytest.raises(Error, match="cannot be read here"):
        brief.rows(f"SELECT {expression}", {})
    assert brief.is_idle


def test_an_enumeration_is_a_text(brief: LibpqConnection, lasting: WatchedConnection) -> None:
    brief.rows("DROP TYPE IF EXISTS public.mood", {})
    brief.rows("CREATE TYPE public.mood AS ENUM ('good', 'so, so')", {})
    statement = "SELECT 'so, so'::public.mood"
    assert brief.rows(statement, {}) == lasting.rows(statement, {}) == [("so, so",)]


def test_an_error_says_what_psycopg_says(brief: LibpqConnection, lasting: WatchedConnection) -> None:
    for statement in (
        "SELEC",
        "SELECT * FROM nothing",
        "SELECT 1/0",
        "DO $$ BEGIN RAISE 'a: b' USING DETAIL = 'c', HINT = 'd'; END $$",
    ):
        with pytest.raises(Error) as ours:
            brief.rows(statement, {})
        with pytest.raises(psycopg.Error) as theirs:
            lasting.rows(statement, {})
        assert str(ours.value) == str(theirs.value)
        assert ours.value.sqlstate == theirs.value.sqlstate
    brief.rows("CREATE TEMPORARY TABLE once (n int CONSTRAINT only_once UNIQUE)", {})
    with pytest.raises(Error) as twice:
        brief.rows("INSERT INTO once VALUES (1), (1)", {})
    assert (twice.value.sqlstate, twice.value.diag.constraint_name) == ("23505", "only_once")
