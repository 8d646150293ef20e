"""How good a model is, and why it says what it says."""
