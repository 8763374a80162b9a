"""The twenty puzzles, one a file: ``PUZZLE`` of each is found by the file's name.

One more is one more file; most begin with a class of ``scylla/list_puzzle.py`` or
``scylla/sum_puzzle.py``. Its right answers by brute force, for the tests, stand in
``tests/scylla/brute_force.py``.
"""
