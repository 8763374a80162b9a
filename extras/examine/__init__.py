"""The examination of one model, from its weights to an answer: ``tidemark examine``."""
