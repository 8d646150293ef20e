"""Cross-validation: folds, kernels, scales and the temper."""
