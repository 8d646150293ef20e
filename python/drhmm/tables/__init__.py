"""Reading of table rows, and the result columns beside them."""
