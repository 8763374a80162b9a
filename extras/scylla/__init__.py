"""Scylla: generated puzzles that tell generalisation from memorisation (Qi et al. 2024).

Inputs of a puzzle that the model itself wrote are *in distribution* (ID). Inputs of the same shape
with numbers that the model never wrote are *out of distribution* (OOD). If the share of right
answers is lower for OOD inputs, the model memorises. See docs/scylla.md and arXiv 2410.01769.

Rules of this package:
- each puzzle is a module of ``puzzles/`` that defines ``PUZZLE``; no other list of puzzles exists;
- random numbers come from ``generator_of``, so they do not depend on the number of workers;
- ``Puzzle.accepts`` judges answers, because a puzzle may have several right answers.
"""
