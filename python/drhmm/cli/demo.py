"""``drhmm demo``: the paper's switching sines, from training to picture."""

from __future__ import annotations

import argparse
import time

import numpy as np

from ..datasets import FREQUENCIES, sines, sines_training
from ..estimator import DensityRatioHMM
from .output import say

WINDOW = 4


def demo(options: argparse.Namespace) -> None:
    """Train, print accuracies and times, and draw the picture."""
    output, noise, n_train, n_frames, seed = (
        options.output,
        options.noise,
        options.train,
        options.frames,
        options.seed,
    )
    try:
        from matplotlib.figure import Figure

        from .. import plotting
    except ImportError as error:
        raise ImportError(f'the picture needs matplotlib: pip install "drhmm[plot]" ({error})') from None
    if output.is_dir() or not output.parent.is_dir():
        raise OSError(f"--output {output}: not a file in an existing folder")
    kinds = Figure().canvas.get_supported_filetypes()
    if output.suffix.lstrip(".").lower() not in kinds:
        raise ValueError(f"--output {output}: the ending must be one of {', '.join(sorted(kinds))}")

    random = np.random.RandomState(seed)
    X, y = sines_training(n_train, window=WINDOW, noise=noise, random_state=random)
    X_test, y_test = sines(n_frames, noise=noise, random_state=random)

    begin = time.perf_counter()
    model = DensityRatioHMM(window=WINDOW, random_state=seed).fit(X, y)
    fitted = time.perf_counter()
    posteriors = {
        "without the chain": model.predict_proba(X_test, method="frame"),
        "filtered (past and present)": model.predict_proba(X_test, method="filter"),
        "smoothed (whole sequence)": model.predict_proba(X_test, method="smooth"),
    }
    predicted = time.perf_counter()

    say(f"Three regimes of noisy sines, f = {', '.join(map(str, FREQUENCIES))}, noise {noise:g}.")
    say(
        f"fit: {len(X)} x {n_train} labelled windows of {WINDOW} samples in {fitted - begin:.2f} s "
        f"(sigma {model.sigma_:.3g}, rho {model.rho_:g}, both by cross-validation)"
    )
    say(f"predict: 3 x {n_frames} time steps in {1000 * (predicted - fitted):.1f} ms")
    for name, values in posteriors.items():
        say(f"  {name:<28} {np.mean(values.argmax(axis=1) == y_test):6.1%} of time steps right")

    figure = Figure(figsize=(10, 6.2), layout="constrained", dpi=120)
    plotting.sequence(
        X_test,
        posteriors,
        states=y_test,
        names=[f"f = {frequency}" for frequency in FREQUENCIES],
        title="Density ratio HMM on switching sines",
        figure=figure,
    )
    figure.savefig(output)
    say(f"picture: {output}")
