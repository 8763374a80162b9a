"""Text of papers from their LaTeX sources; ``reader`` is the entry."""
