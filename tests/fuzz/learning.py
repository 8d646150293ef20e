"""Target: fits, partial fits and ratio sources with data, labels, weights and settings of every kind."""

from __future__ import annotations

import warnings

import numpy as np
import recursions
from layouts import bytes_of, lay_out, odd
from models import impossible
from recursions import lengths_of

from drhmm import DensityRatioHMM, ImpossibleDataError
from drhmm.features.frames import ROUNDINGS
from drhmm.files.serialization import tensors_of
from drhmm.ratios import LeastSquares, TwoClass
from drhmm.tuning.folds import N_FOLDS

#: Settings that are right for two classes, whatever the data, and others.
RIGHT = {
    "n_states": [None, None, 2],
    "ratio": ["pool", "pool", "least-squares"],
    "n_basis": [5, 5, 1, 100, 10**12, "auto", None],
    "sigma": [1.0, 1.0, "default", 1e100],
    "rho": [0.01, 0.01, "default", 1e-100, 1e100],
    "floor": [0.01, 0.01, 0.0, 0.99],
    "evidence_scale": [1.0, 1.0, "cv", 1e-5, 1e50],
    "transition_temper": [1.0, "cv", 0.5, 1e-3],
    "standardize": [True, True, False],
    "window": [1, 1, 2, 5, 10**12, 2**63],
    "transition_prior": [1.0, 1.0, 0.0, 1e-300, 1e50, np.ones((2, 2))],
    "novelty": [False, False, True],
    "novelty_rate": [1e-3, 1e-3],
    "novelty_duration": [50.0, 50.0],
    "max_iter": [3, 3, 1],
    "tol": [1e-4, 0.0],
    "em_update": ["soft", "soft", "paper"],
    "class_weight": [None, None, "balanced", {0: 1.0, 1: 2.0}],
    "random_state": [0, 1, None],
    "n_threads": [1, 2],
    "unknown": ["auto", None, -1, "?"],
}
OTHERS = {
    "n_states": [3, 0, -1, 1.5, "three", 10**9],
    "n_basis": [0, -3, 2.5, "many"],
    "sigma": [1e-100, 0.0, -1.0, np.nan, np.inf, "text", None],
    "rho": [0.0, -1.0, np.nan, "text"],
    "floor": [1.0, -0.1, np.nan, "text"],
    "evidence_scale": [0.0, np.inf, "text", [1.0, 2.0], [-1.0, 1.0, 1.0]],
    "transition_temper": [0.0, 1.5, np.nan, "text"],
    "ratio": ["text", 3],
    "window": [0, 1.5],
    "transition_prior": [-1.0, np.nan, "text"],
    "novelty_rate": [0.0, 1.0, 1e-300, np.nan],
    "novelty_duration": [0.5, 1e300, np.inf],
    "max_iter": [0, 1.5],
    "tol": [-1.0, np.nan],
    "em_update": ["text"],
    "class_weight": [{0: 0.0}, "text"],
    "random_state": [-1, 1.5, "text"],
    "n_threads": [0, -1, 10**6, 1.5],
}


def prepare():
    return None


def labels(random, n_rows):
    """Labels of two classes, or something else; and whether they are right."""
    y = np.arange(n_rows) // 4 % 2
    y[-1] = 1
    chance = random.random()
    if chance < 0.7:
        return y, True
    choices = [
        np.array(["a", "b"])[y],
        y * 1.0,
        y.astype(bool),
        y.tolist(),
        np.where(random.random(n_rows) < 0.5, -1, y),
        np.where(random.random(n_rows) < 0.3, np.nan, y),
        None,
        y[:-1],
        np.zeros(n_rows),
        np.full(n_rows, -1),
        np.arange(n_rows),
        np.array([None, "a", 1, np.nan, (1, 2)] * n_rows, dtype=object)[:n_rows],
        y.astype("M8[s]"),
        np.full(n_rows, np.inf),
        y[:, None],
        "text",
        1,
        np.full(n_rows, 2**63, dtype=np.uint64),
    ]
    place = random.integers(len(choices))
    return choices[place], place < 4


def settings(random):
    """Cheap settings, two of them changed at random; and whether all of them are right."""
    chosen, is_right = {"n_basis": 5, "sigma": 1.0, "rho": 0.01, "evidence_scale": 1.0}, True
    chosen |= {"random_state": 0, "max_iter": 3}
    for name in random.choice(list(RIGHT), size=random.choice([0, 0, 1, 2]), replace=False):
        choices = RIGHT[name] + OTHERS.get(name, [])
        place = random.integers(len(choices))
        chosen[str(name)] = choices[place]
        is_right = is_right and place < len(RIGHT[name])
    if random.random() < 0.02:
        chosen |= {"sigma": "cv", "rho": "cv"}
    return chosen, is_right


def run(random, _):
    n_rows = int(random.choice([3, 12, 40]))
    X = random.normal(size=(n_rows, 2)) * random.choice([1.0, 1.0, 1e-150, 1e60, 1e-310]) + random.choice([0.0, 1e6])
    if random.random() < 0.2:
        X[random.random(X.shape) < 0.1] = np.nan
    if random.random() < 0.1:
        X[:, 0] = random.choice([0.0, 0.1, 1e6]) * (1 + random.choice([0.0, 2.0**-52], size=n_rows))
    (y, good_labels), (lengths, good_lengths) = labels(random, n_rows), lengths_of(random, n_rows)
    weights = None if random.random() < 0.8 else odd(random, random.random(n_rows))
    is_plain = random.random() < 0.85
    given = lay_out(random, X) if is_plain else odd(random, X)
    if is_plain and np.isinf(np.asarray(given, dtype=np.float64)).any():
        is_plain = False  # float16 has made infinities
    before = [bytes_of(value) for value in (given, y, weights)]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if random.random() < 0.2:
            outcome = sources(random, given, weights, n_rows, is_plain and weights is None)
        else:
            is_right = is_plain and good_labels and good_lengths and weights is None
            outcome = estimator(random, given, y, lengths, weights, X, is_right)
    assert before == [bytes_of(value) for value in (given, y, weights)], "an input was changed"
    return outcome


def check_refusal(error, is_right):
    """A refusal has a message, and a reason."""
    assert isinstance(error, MemoryError) or len(str(error)) > 10, repr(error)
    assert not is_right, f"refused what is right: {error!r}"


def estimator(random, given, y, lengths, weights, X, is_right):
    """Fit or partial fit; a fit that is refused leaves nothing, one that is not predicts probabilities."""
    chosen, good_settings = settings(random)
    is_partial = random.random() < 0.2
    learner = DensityRatioHMM(**chosen)
    try:
        if is_partial:
            for _ in range(int(random.integers(1, 3))):
                learner.partial_fit(given, y, lengths=lengths, sample_weight=weights)
        else:
            learner.fit(given, y, lengths=lengths, sample_weight=weights)
    except (ValueError, TypeError, MemoryError) as error:
        is_right = is_right and good_settings
        check_refusal(error, is_right and not is_reason(str(error), given, y, lengths, chosen, is_partial))
        if hasattr(learner, "model_"):  # an earlier block was learned from
            predict(learner.model_, np.zeros((3, learner.model_.n_features)))
        return "refused"
    model = learner.model_
    for values in tensors_of(model).values():
        assert np.isfinite(values).all(), "what was learned is not finite"
    predict(model, X if model.n_features == 2 else random.normal(size=(5, model.n_features)))
    return "plausible"


def predict(model, X):
    """Plain samples are answered, unless they are impossible, or too far apart where a transition is forbidden."""
    try:
        posteriors = model.predict_proba(X)
    except ImpossibleDataError as error:
        first = impossible(model, X, "smooth", None, None)
        assert (error.sequence, error.frame, error.row) == first, f"{error}, but the first impossible frame is {first}"
    except ValueError as error:
        is_forbidden = (model.transmat == 0).any() or (model.startprob == 0).any()
        check_refusal(error, not (is_forbidden and recursions.is_reason(str(error), model.log_ratios(X))))
    else:
        assert impossible(model, X, "smooth", None, None) is None, "an answer to impossible data"
        assert np.isfinite(posteriors).all() and np.abs(posteriors.sum(axis=1) - 1).max() < 1e-9


def is_reason(words, given, y, lengths, chosen, is_partial):
    """Whether a refusal of data and settings that are right one by one names what is wrong with them together."""
    X, y = np.array(given, dtype=np.float64), np.asarray(y)
    ends = np.cumsum([len(X)] if lengths is None else lengths)
    window = min(chosen.get("window", 1), len(X) + 1)
    complete = complete_frames(X, ends, window)
    of_class = [complete & (y == label) for label in np.unique(y)]
    followed = np.isin(np.arange(len(X)) + 1, ends, invert=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spread, largest = np.nanmax(X, axis=0) - np.nanmin(X, axis=0), np.nanmax(np.abs(X), axis=0)
    rounding = np.finfo(np.float32 if getattr(given, "dtype", None) == np.float32 else np.float64).eps
    apart = np.ptp(X[complete], axis=0) ** 2 if complete.any() else np.zeros(2)
    reasons = {
        "every entry is NaN": np.isnan(X).all(axis=0).any(),
        "X is constant in every column": (spread <= ROUNDINGS * rounding * largest).all(),
        "X spreads too little in column": ((spread > 0) & (spread < 1e-150)).any(),
        "X has no complete frame": not complete.any(),
        "complete frames": complete.sum() < 2,
        "is not positive definite: choose a larger rho": chosen["rho"] == 1e-100,
        "X has only duplicate frames": isinstance(chosen["sigma"], str) and not apart.any(),
        "has no complete frame: all of its frames lack": not all(rows.any() for rows in of_class),
        "cross-validation of sigma and rho needs": chosen["sigma"] == "cv" and complete.sum() < N_FOLDS,
        "is never followed by a time step": not all((followed & (y == label)).any() for label in np.unique(y)),
        "novelty=True needs a positive floor": chosen.get("novelty") and chosen.get("floor") == 0,
        "class_weight='balanced' needs all data at once": is_partial,
        "class_weight": isinstance(chosen.get("class_weight"), dict) and y.dtype.kind not in "biu",
    }
    return any(holds and text in words for text, holds in reasons.items())


def complete_frames(X, ends, window):
    """Rows whose window is there, without NaN and within their sequence."""
    there, run_length = np.zeros(len(X), dtype=bool), 0
    for row, is_missing in enumerate(np.isnan(X).any(axis=1)):
        run_length = 0 if is_missing else run_length + 1
        there[row] = run_length >= window
        if row + 1 in ends:
            run_length = 0
    return there


def sources(random, given, weights, n_rows, is_right):
    """Ratio sources on their own."""
    targets = np.eye(2)[random.integers(2, size=n_rows)]
    n_frames = targets.sum(axis=0).min()
    if random.random() < 0.7:
        targets, is_right = odd(random, targets), False
    if is_right and np.isnan(np.array(given, dtype=np.float64)).any():
        is_right = False
    try:
        if random.random() < 0.5:
            is_right = is_right and n_frames >= 1
            source = LeastSquares(n_basis=5, sigma=1.0, rho=0.01, random_state=0).fit(given, targets, weights)
            assert np.isfinite(source.theta_).all(), "what was learned is not finite"
        else:
            is_right = is_right and n_frames >= 2
            source = TwoClass(sigma=1.0, rho=0.01, random_state=0).fit(given, targets)
        answer = source.log_ratios(given)
    except (ValueError, TypeError, MemoryError) as error:
        check_refusal(error, is_right)
        return "refused"
    assert not np.isnan(answer).any() or np.isnan(np.array(given, dtype=np.float64)).any(), "NaN in log ratios"
    return "plausible"
