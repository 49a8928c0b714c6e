"""The result of `doctor`: one finding for each check, and the verdict over all of them. No I/O."""

from __future__ import annotations

from enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Verdict(StrEnum):
    """The result of one check; the worst of all checks is the verdict on the yard."""

    GREEN = "green"
    WARN = "warn"
    REFUSE = "refuse"


_SEVERITY = {verdict: number for number, verdict in enumerate(Verdict)}


class Finding:
    """The result of one check: verdict, reason, a hint for the remedy, and what was measured."""

    __slots__ = ("check", "hint", "measured", "reason", "verdict")

    def __init__(self, check: str, verdict: Verdict, reason: str, hint: str | None, measured: dict[str, Any]) -> None:
        self.check = check
        self.verdict = verdict
        self.reason = reason
        self.hint = hint
        self.measured = measured

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        fields = {"check": self.check, "verdict": str(self.verdict), "reason": self.reason, "hint": self.hint}
        return {**fields, **self.measured}


def green(check: str, reason: str, **measured: Any) -> Finding:
    """Make a finding that nothing is wrong."""
    return Finding(check, Verdict.GREEN, reason, None, measured)


def warn(check: str, reason: str, hint: str, **measured: Any) -> Finding:
    """Make a finding that tasks are safe, but that a person should read."""
    return Finding(check, Verdict.WARN, reason, hint, measured)


def refuse(check: str, reason: str, hint: str, **measured: Any) -> Finding:
    """Make a finding that tasks would not be safe here, or that nothing would work."""
    return Finding(check, Verdict.REFUSE, reason, hint, measured)


class Diagnosis:
    """All findings about one directory or database; `place` names it."""

    __slots__ = ("findings", "place")

    def __init__(self, place: str, findings: list[Finding]) -> None:
        self.place = place
        self.findings = findings

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all findings."""
        return max((finding.verdict for finding in self.findings), key=_SEVERITY.__getitem__, default=Verdict.GREEN)

    def as_dict(self) -> dict[str, Any]:
        """Return the diagnosis as a JSON object."""
        checks = [finding.as_dict() for finding in self.findings]
        return {"verdict": str(self.verdict), "place": self.place, "checks": checks}
