"""Scylla: generated puzzles that tell generalisation from memorisation (Qi et al. 2024).

Inputs of a puzzle that the model itself wrote are *in distribution* (ID). Inputs of the same shape
with numbers that the model never wrote are *out of distribution* (OOD). A lower share of right
answers to OOD inputs shows memorisation. See docs/scylla.md and arXiv 2410.01769.

Rules of this package:
- each puzzle is a module of ``puzzles/`` that defines ``PUZZLE``; the folder is the registry;
- random numbers come from ``generator_of``, so they do not depend on the number of workers;
- a verifier judges answers; no answer is compared with a single stored answer.
"""
