"""Scylla: generated puzzles that tell generalisation from memorisation (Qi et al. 2024).

A model writes inputs of a puzzle itself: these it knows, they are *in distribution* (ID). Others of
the same shape are made of numbers that it never wrote (OOD). What it solves less often among the
latter, it has learnt by heart. See docs/scylla.md and arXiv 2410.01769.

Rules of this room:
- a puzzle is one module of ``puzzles/`` that has ``PUZZLE``; the folder is the registry;
- all that is random comes from ``seeds.py``: the same for any number of workers;
- what a model wrote is judged by a verifier, never compared with one stored answer.
"""
