"""The twenty puzzles: each file defines ``PUZZLE``, and the file's name is the puzzle's name.

To add a puzzle, add a file; most puzzles subclass a class of ``scylla/list_puzzle.py``. Tests need
a brute-force solution of each puzzle in ``tests/scylla/brute_force.py``.
"""
