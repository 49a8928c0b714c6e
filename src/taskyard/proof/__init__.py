"""Proof: processes record their requests to a yard and its answers, and `check` compares the record with the promises.

It uses the contract's words and knows no store. A history is a folder with one file for each process.
"""

from taskyard.proof.checker import check
from taskyard.proof.final_state import FinalState
from taskyard.proof.history import History
from taskyard.proof.recorded_yard import RecordedYard
from taskyard.proof.recorder import HistoryWriter
from taskyard.proof.verdict import Verdict, Violation

__all__ = ["FinalState", "History", "HistoryWriter", "RecordedYard", "Verdict", "Violation", "check"]
