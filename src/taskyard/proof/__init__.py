"""Proof: what everybody asked a yard for and was told is written down, and checked against the promise afterwards.

It knows the words of the contract and no store. A history is a folder with one file for each process.
"""

from taskyard.proof.checker import check
from taskyard.proof.final_state import FinalState
from taskyard.proof.history import History
from taskyard.proof.recorded_yard import RecordedYard
from taskyard.proof.recorder import HistoryWriter
from taskyard.proof.verdict import Verdict, Violation

__all__ = ["FinalState", "History", "HistoryWriter", "RecordedYard", "Verdict", "Violation", "check"]
