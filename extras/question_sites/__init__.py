"""Questions of Kalshi and Metaculus, which need a permission."""
