"""Takedown: `tidemark corpus forget` removes documents everywhere, permanently."""
