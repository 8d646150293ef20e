"""Judging: evaluation, cross-validation, numbers of states and explanations."""
