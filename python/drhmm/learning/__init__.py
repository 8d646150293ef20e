"""From training frames to a model: labelled, partly labelled, unlabelled, in blocks."""
