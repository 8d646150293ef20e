"""What users bring: sequences, labels, tables and times, and the checks at the public edge."""
