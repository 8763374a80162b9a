"""The twenty puzzles: each file defines ``PUZZLE``, and the file's name is the puzzle's name.

To add a puzzle, add a file; most puzzles subclass a class of ``scylla/list_puzzle.py``. Also add
its brute-force solution, which tests use, to ``tests/scylla/brute_force.py``.
"""
