"""Neonatal intensive care: the paper's Table 1 on its file, or on simulated babies in a file of the same structure."""
