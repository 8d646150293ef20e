"""Learning from training frames: labelled, partly labelled, unlabelled, in blocks."""
