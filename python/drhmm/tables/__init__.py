"""Rows, result columns and stretches of tables."""
