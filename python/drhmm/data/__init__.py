"""Input data: sequences, labels, tables, times, and the public argument checks."""
