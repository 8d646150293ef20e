"""Evidence: log ratios of fitted sources, and of the unknown."""
