"""Proof: what everybody asked a yard for and was told is written down, and checked against the promise afterwards.

It knows the words of the contract and no store. A history is a folder with one file for each process.
"""

from taskyard.proof.checker import check
from taskyard.proof.history import History
from taskyard.proof.picture import Picture
from taskyard.proof.scribe import Scribe
from taskyard.proof.verdict import Verdict, Violation
from taskyard.proof.witness import Witness

__all__ = ["History", "Picture", "Scribe", "Verdict", "Violation", "Witness", "check"]
