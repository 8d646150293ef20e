"""drhmm."""
