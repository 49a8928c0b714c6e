"""Cron expressions and time zones: the only module that knows the library which reads them."""

from __future__ import annotations

import functools

from taskyard.core.errors import Invalid, Unavailable
from taskyard.core.words import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo

    from taskyard.core.schedule import After

_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MOST = 200  # characters of an expression
_YEARS = 253_402_300_799_000  # milliseconds: the last second that a datetime can hold


class Missing(Unavailable):
    """Schedules need a library that is not installed here."""

    def __init__(self) -> None:
        super().__init__(hint="install it with: pip install 'taskyard[schedules]'")


def is_installed() -> bool:
    """Whether this process can read cron expressions."""
    try:
        import cronsim  # noqa: F401
    except ImportError:
        return False
    return True


def checked(cron: object, tz: object) -> tuple[str, str]:
    """Return the expression, written out and with single spaces, and the name of the zone; raise `Invalid` if one is wrong."""
    if not isinstance(cron, str) or not isinstance(tz, str):
        raise Invalid("cron and tz must be texts", hint='write "30 2 * * *" and Europe/Berlin')
    text = _NICKNAMES.get(cron.strip(), " ".join(cron.split()))
    if len(text) > _MOST:
        raise Invalid(f"the cron expression has {len(text)} characters, and the most is {_MOST}")
    times_of(text, tz)
    return text, tz


@functools.lru_cache(256)
def times_of(cron: str, tz: str) -> After:
    """Return the function that finds the first tick after a moment; raise `Invalid` for a wrong expression or zone."""
    try:
        from cronsim import CronSim, CronSimError
    except ImportError:
        raise Missing from None
    from datetime import UTC, datetime

    zone = _zone(tz)
    try:
        CronSim(cron, datetime.now(zone))
    except CronSimError as error:
        raise Invalid(
            f"not a cron expression: {shown(cron)} ({error})",
            hint="write minute, hour, day of month, month and day of week, such as '30 2 * * *'",
        ) from None

    def after(moment: int) -> int | None:
        if moment >= _YEARS:
            return None
        begin = datetime.fromtimestamp(moment / 1000, UTC).astimezone(zone)
        # An hour that comes twice may give ticks of its first half again, and an hour that is left out two at its end.
        for tick in CronSim(cron, begin):
            found = round(tick.timestamp() * 1000)
            if found > moment:
                return found
        return None

    return after


def _zone(tz: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(tz)
    except (KeyError, ValueError, OSError):
        raise Invalid(
            f"not a time zone: {shown(tz)}",
            hint="write it as Europe/Berlin or UTC; where the system has no database of zones: pip install tzdata",
        ) from None
