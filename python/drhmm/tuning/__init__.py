"""What cross-validation chooses: folds, kernels, scales and the temper."""
