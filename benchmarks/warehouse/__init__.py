"""The warehouse: landing generated losses and reading views of them."""
