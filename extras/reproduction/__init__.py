"""Score one cell again, and compare its losses with those that landed."""
