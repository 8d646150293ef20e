"""Exact and 50-digit arithmetic for the recursion: what the native core must agree with to its last digits.

`enumerated` sums over every path in rational numbers. `Oracle` is forward-backward in numbers of 50 digits whose
exponents have no limit, so that nothing is ever scaled; it takes the very doubles that the core gets.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cached_property

import mpmath
import numpy as np

DIGITS = 50
#: The contract of the core: a posterior p is right to 1e-11 of max(p, SMALLEST), and exactly 0 where it must be.
SMALLEST = 1e-100


def enumerated(weights, transmat, startprob):
    """Smoothed posteriors (T, S), expected transitions (S, S) and the best path, from all S^T paths of Fractions."""
    n_frames, n_states = len(weights), len(startprob)
    posteriors = [[Fraction(0)] * n_states for _ in range(n_frames)]
    counts = [[Fraction(0)] * n_states for _ in range(n_states)]
    best, best_path, total = Fraction(-1), None, Fraction(0)
    for path in itertools.product(range(n_states), repeat=n_frames):
        probability = Fraction(startprob[path[0]]) * weights[0][path[0]]
        for t in range(1, n_frames):
            probability *= Fraction(transmat[path[t - 1]][path[t]]) * weights[t][path[t]]
        if probability > best:
            best, best_path = probability, path
        total += probability
        for t, state in enumerate(path):
            posteriors[t][state] += probability
        for i, j in itertools.pairwise(path):
            counts[i][j] += probability
    normalized = [[value / total for value in row] for row in posteriors]
    return normalized, [[value / total for value in row] for row in counts], list(best_path)


def as_numbers(values):
    """Doubles as numbers of 50 digits, exactly."""
    return [[mpmath.mpf(float(value)) for value in row] for row in np.atleast_2d(values)]


class Oracle:
    """Forward and backward messages of one sequence; every result is a list of rows of numbers of 50 digits."""

    def __init__(self, log_ratios, transmat, startprob, dt=None):
        self.log_ratios = np.asarray(log_ratios)
        self.n_frames, self.n_states = self.log_ratios.shape
        with mpmath.workdps(DIGITS):
            self.transmat, self.startprob = as_numbers(transmat), as_numbers(startprob)[0]
            self.weights = [self._weights(row) for row in self.log_ratios]
        self.dt = [1] * self.n_frames if dt is None else [int(steps) for steps in dt]
        self._powers = {}

    def _weights(self, row):
        if np.isnan(row).all():
            return [mpmath.mpf(1)] * self.n_states
        if np.isposinf(row).any():
            return [mpmath.mpf(int(value == np.inf)) for value in row]
        return [mpmath.exp(mpmath.mpf(float(value))) if np.isfinite(value) else mpmath.mpf(0) for value in row]

    def _power(self, steps):
        """A^steps and its transpose, as lists of rows."""
        if steps not in self._powers:
            result = [[mpmath.mpf(int(i == j)) for j in range(self.n_states)] for i in range(self.n_states)]
            square = self.transmat
            for digit in range(steps.bit_length()):
                if steps >> digit & 1:
                    result = self._product(result, square)
                square = self._product(square, square)
            self._powers[steps] = result, [list(column) for column in zip(*result, strict=True)]
        return self._powers[steps]

    @staticmethod
    def _product(one, other):
        columns = list(zip(*other, strict=True))
        return [[mpmath.fdot(row, column) for column in columns] for row in one]

    @cached_property
    def forward(self):
        """f_j(t) = w_j(t) sum_i f_i(t-1) A^dt_ij"""
        with mpmath.workdps(DIGITS):
            messages, message = [], self.startprob
            for t, weights in enumerate(self.weights):
                steps = self.dt[t] - (t == 0)
                if steps > 0:
                    message = [mpmath.fdot(message, column) for column in self._power(steps)[1]]
                message = [m * w for m, w in zip(message, weights, strict=True)]
                messages.append(message)
            return messages

    def backward(self, first, last):
        """b_i(t) = sum_j A^dt_ij w_j(t+1) b_j(t+1) for t in first..last, where b(last) = 1."""
        with mpmath.workdps(DIGITS):
            messages = [[mpmath.mpf(1)] * self.n_states]
            for t in range(last, first, -1):
                weighted = [b * w for b, w in zip(messages[-1], self.weights[t], strict=True)]
                messages.append([mpmath.fdot(weighted, row) for row in self._power(self.dt[t])[0]])
            return messages[::-1]

    def filter(self):
        return self.forward

    def smooth(self):
        with mpmath.workdps(DIGITS):
            backward = self.backward(0, self.n_frames - 1)
            return [[f * b for f, b in zip(*rows, strict=True)] for rows in zip(self.forward, backward, strict=True)]

    def fixed_lag(self, lag):
        with mpmath.workdps(DIGITS):
            rows = []
            for t, forward in enumerate(self.forward):
                backward = self.backward(t, min(t + lag, self.n_frames - 1))[0]
                rows.append([f * b for f, b in zip(forward, backward, strict=True)])
            return rows

    def expected_transitions(self):
        with mpmath.workdps(DIGITS):
            backward = self.backward(0, self.n_frames - 1)
            total = mpmath.fsum(self.forward[-1])
            weighted = [
                [b * w for b, w in zip(*rows, strict=True)] for rows in zip(backward, self.weights, strict=True)
            ]
            return [
                [
                    self.transmat[i][j]
                    * mpmath.fsum(self.forward[t][i] * weighted[t + 1][j] for t in range(self.n_frames - 1))
                    / total
                    for j in range(self.n_states)
                ]
                for i in range(self.n_states)
            ]

    def log_probability(self, path):
        """Log of the probability of a path times its evidence."""
        with mpmath.workdps(DIGITS):
            factors = [self.startprob[path[0]]]
            factors += [self.transmat[i][j] for i, j in itertools.pairwise(path)]
            factors += [row[state] for row, state in zip(self.weights, path, strict=True)]
            return mpmath.fsum(mpmath.log(factor) for factor in factors)

    def best_log_probability(self):
        """The same of the most probable path."""
        with mpmath.workdps(DIGITS):
            best = [p * w for p, w in zip(self.startprob, self.weights[0], strict=True)]
            columns = list(zip(*self.transmat, strict=True))
            for weights in self.weights[1:]:
                best = [
                    max(b * a for b, a in zip(best, column, strict=True)) * w
                    for column, w in zip(columns, weights, strict=True)
                ]
            return mpmath.log(max(best))


def ratios_to_pivot(rows):
    """Doubles next to the exact ratios of every entry to the largest of its row, and which of them are exactly 0."""
    with mpmath.workdps(DIGITS):
        ratios = [[value / max(row) for value in row] for row in rows]
        zeros = np.array([[value == 0 for value in row] for row in rows])
    return np.array([[float(value) for value in row] for row in ratios]), zeros


def largest_error(posteriors, exact):
    """Largest error of the posterior ratios of all frames; infinite if a zero is not one, or a number is none.

    posteriors (T, S); exact: what `ratios_to_pivot` returns. Every posterior is taken relative to that of the state
    which is likeliest by the oracle. Errors are relative, and those of posteriors below `SMALLEST` relative to that.
    """
    expected, zeros = exact
    pivots = expected.argmax(axis=1)[:, None]
    found = posteriors / np.take_along_axis(posteriors, pivots, axis=1)
    if not np.isfinite(found).all() or (found[zeros] != 0).any():
        return np.inf
    return float((np.abs(found - expected) / np.maximum(expected, SMALLEST)).max())
