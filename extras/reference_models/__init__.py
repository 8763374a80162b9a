"""Reference models, trained up to a known month, and the demo that finds their cutoffs."""
