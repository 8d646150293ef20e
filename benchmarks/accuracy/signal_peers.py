"""What people use on raw signals: boosting on rolling windows, MiniRocket with a ridge, and a small network."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import RidgeClassifierCV
from sklearn.preprocessing import StandardScaler

from drhmm import DensityRatioHMM
from drhmm.ratios import FromClassifier

#: Windows of rolling statistics, and samples of a window of MiniRocket, both centred: these systems work afterwards.
WINDOWS, ROCKET_WINDOW, ROCKET_KERNELS, MOST_ROCKET_ROWS = (5, 17, 65), 33, 252, 8000

#: Channels, layers and steps of the network, and the length of the pieces that it learns from.
CHANNELS, N_LAYERS, N_STEPS, PIECE, BATCH = 32, 5, 500, 256, 16


def sequences_of(values, lengths):
    """One part per sequence."""
    return np.split(values, np.cumsum(lengths)[:-1])


def rolling(X, lengths):
    """The samples, and mean, standard deviation, least and largest value of every column over centred windows."""
    parts = []
    for part in sequences_of(X, lengths):
        columns = [part]
        for width in WINDOWS:
            padded = np.pad(part, ((width // 2, width - 1 - width // 2), (0, 0)), mode="edge")
            view = np.lib.stride_tricks.sliding_window_view(padded, width, axis=0)
            columns += [view.mean(axis=2), view.std(axis=2), view.min(axis=2), view.max(axis=2)]
        parts.append(np.hstack(columns))
    return np.vstack(parts)


class RollingBoosting:
    """Histogram boosting on rolling statistics, alone or as the evidence of a chain."""

    def __init__(self, seed, in_chain):
        self.classifier, self.in_chain, self.seed = HistGradientBoostingClassifier(random_state=seed), in_chain, seed

    def fit(self, X, y, lengths):
        """Learn from labelled sequences."""
        frames = rolling(X, lengths)
        if self.in_chain:
            source = FromClassifier(self.classifier)
            self.model = DensityRatioHMM(ratio=source, random_state=self.seed, n_threads=1)
            self.model.fit(frames, y, lengths=lengths)
        else:
            self.classifier.fit(frames, y)
        return self

    def predict_proba(self, X, lengths):
        """Probabilities (T, S)."""
        frames = rolling(X, lengths)
        if self.in_chain:
            return self.model.predict_proba(frames, lengths=lengths)
        return self.classifier.predict_proba(frames)


class RocketRidge:
    """MiniRocket features (aeon) of a centred window, and a ridge classifier; probabilities by a softmax."""

    def __init__(self, seed):
        self.seed = seed

    def _windows(self, X, lengths):
        half = ROCKET_WINDOW // 2
        padded = [np.pad(part, ((half, half), (0, 0)), mode="edge") for part in sequences_of(X, lengths)]
        views = [np.lib.stride_tricks.sliding_window_view(part, ROCKET_WINDOW, axis=0) for part in padded]
        return np.concatenate(views).astype(np.float32)

    def fit(self, X, y, lengths):
        """Learn from labelled sequences, at most `MOST_ROCKET_ROWS` of their rows."""
        from aeon.transformations.collection.convolution_based import MiniRocket

        some = np.linspace(0, len(y) - 1, min(len(y), MOST_ROCKET_ROWS)).astype(int)
        windows = self._windows(X, lengths)[some]
        self.rocket = MiniRocket(n_kernels=ROCKET_KERNELS, random_state=self.seed, n_jobs=1)
        self.scaler = StandardScaler()
        features = self.scaler.fit_transform(self.rocket.fit_transform(windows))
        self.ridge = RidgeClassifierCV(np.logspace(-1, 4, 6)).fit(features, y[some])
        return self

    def predict_proba(self, X, lengths):
        """Probabilities (T, S)."""
        windows, parts = self._windows(X, lengths), []
        for begin in range(0, len(windows), 4000):
            features = self.scaler.transform(self.rocket.transform(windows[begin : begin + 4000]))
            scores = self.ridge.decision_function(features)
            parts.append(np.column_stack([-scores, scores]) if scores.ndim == 1 else scores)
        scores = 4 * np.concatenate(parts)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)


class ConvolutionNetwork:
    """A temporal convolution network: dilated layers with residuals, 500 steps of Adam on pieces of sequences."""

    def __init__(self, seed):
        self.seed = seed

    def fit(self, X, y, lengths):
        """Learn from labelled sequences."""
        import torch

        torch.manual_seed(self.seed)
        torch.set_num_threads(1)
        random = np.random.default_rng(self.seed)
        self.mean, self.scale = X.mean(axis=0), X.std(axis=0) + 1e-9
        self.network = _network(X.shape[1], int(y.max()) + 1)
        optimizer = torch.optim.Adam(self.network.parameters(), lr=3e-3, weight_decay=1e-4)
        pieces = list(zip(sequences_of(X, lengths), sequences_of(y, lengths), strict=True))
        shares = np.array(lengths) / sum(lengths)
        for _ in range(N_STEPS):
            inputs, truth = np.zeros((BATCH, PIECE, X.shape[1])), np.full((BATCH, PIECE), -1)
            for k, place in enumerate(random.choice(len(pieces), BATCH, p=shares)):
                samples, labels = pieces[place]
                begin = random.integers(0, max(len(labels) - PIECE, 0) + 1)
                own = labels[begin : begin + PIECE]
                inputs[k, : len(own)] = (samples[begin : begin + PIECE] - self.mean) / self.scale
                truth[k, : len(own)] = own
            scores = self.network(torch.tensor(inputs, dtype=torch.float32).transpose(1, 2))
            loss = torch.nn.functional.cross_entropy(scores, torch.tensor(truth), ignore_index=-1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return self

    def predict_proba(self, X, lengths):
        """Probabilities (T, S)."""
        import torch

        self.network.eval()
        parts = []
        with torch.no_grad():
            for part in sequences_of((X - self.mean) / self.scale, lengths):
                scores = self.network(torch.tensor(part.T[None], dtype=torch.float32))
                parts.append(torch.softmax(scores[0], dim=0).numpy().T.astype(float))
        return np.concatenate(parts)


def _network(n_columns, n_states):
    import torch
    from torch import nn

    class Residual(nn.Module):
        def __init__(self, dilation):
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv1d(CHANNELS, CHANNELS, 5, padding=2 * dilation, dilation=dilation),
                nn.BatchNorm1d(CHANNELS),
                nn.ReLU(),
                nn.Dropout(0.2),
            )

        def forward(self, values):
            return values + self.layers(values)

    layers = [nn.Conv1d(n_columns, CHANNELS, 5, padding=2), nn.ReLU()]
    layers += [Residual(2**k) for k in range(N_LAYERS)]
    return torch.nn.Sequential(*layers, nn.Conv1d(CHANNELS, n_states, 1))
