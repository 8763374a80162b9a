"""The corpus: sealed partitions, their versions, takedown, permissions, and sealed questions."""
