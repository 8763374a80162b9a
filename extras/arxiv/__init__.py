"""Papers of arXiv, and the reading of LaTeX sources."""
