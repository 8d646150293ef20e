"""The chain of states: transitions, durations, tempering, the unknown."""
