"""The vocabulary that every room shares.

Record schemas, months, settings, errors, storage, the layout of the corpus and of the losses.
Rules of this room: it imports nothing of ours, does no I/O at import, and is the only place that
reads environment variables (in ``settings.py``).
"""
