"""The puzzles: a file defines ``PUZZLE``, or several in ``PUZZLES``; their classes name them.

To add a puzzle, add a file; most puzzles subclass a class of ``scylla/list_puzzle.py``. Tests need
a brute-force solution of each puzzle in ``tests/scylla/brute_force.py``.
"""
