"""Questions of Polymarket, and those of Kalshi and Metaculus, which need a permission."""
