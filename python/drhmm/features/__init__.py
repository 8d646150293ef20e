"""Features: from samples to frames by scaling, windows and context."""
