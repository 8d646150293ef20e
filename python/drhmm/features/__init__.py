"""From samples to frames: scaling, windows and context."""
