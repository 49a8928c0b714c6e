"""What an examination of a place finds: one finding for each check, and the verdict over all. No I/O."""

from __future__ import annotations

from enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Verdict(StrEnum):
    """How good something is; the worst of its checks decides about a place."""

    GREEN = "green"
    WARN = "warn"
    REFUSE = "refuse"


_SEVERITY = {verdict: number for number, verdict in enumerate(Verdict)}


class Finding:
    """What one check found: how good it is, why, what to do about it, and what was measured."""

    __slots__ = ("check", "hint", "measured", "reason", "verdict")

    def __init__(self, check: str, verdict: Verdict, reason: str, hint: str | None, measured: dict[str, Any]) -> None:
        self.check = check
        self.verdict = verdict
        self.reason = reason
        self.hint = hint
        self.measured = measured

    def as_dict(self) -> dict[str, Any]:
        """As it is written in JSON."""
        told = {"check": self.check, "verdict": str(self.verdict), "reason": self.reason, "hint": self.hint}
        return {**told, **self.measured}


def green(check: str, reason: str, **measured: Any) -> Finding:
    """All is well."""
    return Finding(check, Verdict.GREEN, reason, None, measured)


def warn(check: str, reason: str, hint: str, **measured: Any) -> Finding:
    """Tasks are safe, with something to mind."""
    return Finding(check, Verdict.WARN, reason, hint, measured)


def refuse(check: str, reason: str, hint: str, **measured: Any) -> Finding:
    """Tasks would not be safe, or nothing would work at all."""
    return Finding(check, Verdict.REFUSE, reason, hint, measured)


class Diagnosis:
    """All findings about one place."""

    __slots__ = ("findings", "place")

    def __init__(self, place: str, findings: list[Finding]) -> None:
        self.place = place
        self.findings = findings

    @property
    def verdict(self) -> Verdict:
        """The worst of them."""
        return max((finding.verdict for finding in self.findings), key=_SEVERITY.__getitem__, default=Verdict.GREEN)

    def as_dict(self) -> dict[str, Any]:
        """As it is written in JSON."""
        checks = [finding.as_dict() for finding in self.findings]
        return {"verdict": str(self.verdict), "place": self.place, "checks": checks}
