"""What fitted sources say about frames: the pool and the unknown."""
