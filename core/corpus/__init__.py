"""The corpus: sealed partitions and their versions, takedown, permissions, sealed questions."""
