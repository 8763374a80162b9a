"""The puzzles: a file defines ``PUZZLE``, or several in ``PUZZLES``; their classes name them.

To add a puzzle, add a file; most puzzles subclass a class of ``list_puzzle.py``. Tests need
a brute-force solution of each puzzle in ``tests/brute_force.py`` of this extra.
"""
