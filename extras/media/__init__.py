"""Images and recordings, cut into pieces that models score as bytes, and two sources of them."""
