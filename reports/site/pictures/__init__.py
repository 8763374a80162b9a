"""Pictures without Vega: small lines of the board, the marks of lanes, the frame of a card."""
