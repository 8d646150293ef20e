"""Rows of tables: how they are read, and what is written beside them."""
