"""Former databases, and checkpoints of before transformers took over their code."""
