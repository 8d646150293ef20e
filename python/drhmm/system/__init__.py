"""Threads of other libraries, and progress of long work."""
