"""`tidemark clean`: what cleaning makes of one text."""
