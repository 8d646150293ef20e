"""Evidence from two-class ratios, classifiers, densities and classes of the user's own."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.svm import LinearSVC

from drhmm import DensityRatioHMM
from drhmm.ratios import FromClassifier, FromDensities, LeastSquares, TwoClass
from drhmm.ratios.from_densities import BANDWIDTHS
from drhmm.ratios.two_class import leave_one_out_scores
from drhmm.reference import ratios as reference
from problems import blobs

X3, Y3 = blobs(0, n_frames=300)
X2, Y2 = X3, (Y3 == 1).astype(int)


def gaussian_pair(n=3000, share=0.3):
    """Unit Gaussians one apart: log p(y|1) / p(y|0) = y - 0.5."""
    random = np.random.default_rng(0)
    states = (random.random(n) < share).astype(int)
    return random.normal(size=(n, 1)) + states[:, None], np.eye(2)[states]


POINTS = np.linspace(-0.5, 1.5, 9)[:, None]

SOURCES = {
    "least squares": LeastSquares(n_basis=100, random_state=0),
    "uLSIF": TwoClass(random_state=0),
    "RuLSIF": TwoClass(alpha=0.3, random_state=0),
    "logistic regression": FromClassifier(LogisticRegression()),
    "balanced": FromClassifier(LogisticRegression(class_weight="balanced"), prior="uniform"),
    "KDE": FromDensities("kde"),
    "GMM": FromDensities("gmm"),
    "a density": FromDensities(KernelDensity(bandwidth=0.3)),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
class TestEverySource:
    def test_recovers_a_known_ratio_whatever_the_class_shares(self, source):
        log_ratios = clone(source).fit(*gaussian_pair()).log_ratios(POINTS)
        assert_allclose(log_ratios[:, 1] - log_ratios[:, 0], POINTS[:, 0] - 0.5, atol=0.25)

    def test_makes_a_model_that_predicts(self, source):
        fitted = DensityRatioHMM(ratio=source, random_state=0).fit(X2, Y2)
        assert fitted.score(X2, Y2) > 0.8
        assert_allclose(fitted.predict_proba(X2).sum(axis=1), 1)

    def test_survives_pickling_inside_a_model(self, source):
        fitted = DensityRatioHMM(ratio=source, random_state=0).fit(X2, Y2)
        copy = pickle.loads(pickle.dumps(fitted.model_))
        assert_array_equal(copy.predict_proba(X2), fitted.predict_proba(X2))

    def test_is_not_changed_by_fit(self, source):
        before = vars(source).copy()
        DensityRatioHMM(ratio=source, random_state=0).fit(X2, Y2)
        assert vars(source) == before

    def test_refuses_masked_frames(self, source):
        fitted = clone(source).fit(*gaussian_pair(200))
        with pytest.raises(ValueError, match="frames is a masked array with masked values"):
            fitted.log_ratios(np.ma.masked_less(POINTS, 0))

    def test_says_that_it_is_not_fitted(self, source):
        with pytest.raises(NotFittedError, match=r"is not fitted yet: call fit\(frames, targets\) first"):
            clone(source).log_ratios(POINTS)

    @pytest.mark.parametrize("labels", [Y2, Y2.tolist(), Y2.astype(str)], ids=["array", "list", "text"])
    def test_says_what_targets_are_when_it_gets_labels(self, source, labels):
        with pytest.raises(ValueError, match=r"got shape \(300,\): they are the probability of each state"):
            clone(source).fit(X2, labels)


class TestTwoClass:
    @pytest.mark.parametrize("alpha", [0.0, 0.1, 0.7])
    @pytest.mark.parametrize(("n_numerator", "n_denominator"), [(12, 20), (20, 12), (15, 15)])
    def test_leave_one_out_scores_equal_an_explicit_loop(self, alpha, n_numerator, n_denominator):
        random = np.random.default_rng(0)
        numerator, denominator = random.random((n_numerator, 8)), random.random((n_denominator, 8))
        rhos = np.array([1e-3, 0.05, 10.0])
        scores = leave_one_out_scores(numerator, denominator, alpha, rhos)
        expected = [reference.leave_one_out_scores(numerator, denominator, alpha, rho) for rho in rhos]
        assert_allclose(scores, np.transpose(expected), atol=1e-9)

    def test_theta_is_the_closed_form_of_means(self):
        frames, targets = gaussian_pair(200)
        source = TwoClass(sigma=1.0, rho=0.1, n_basis=20, random_state=0).fit(frames, targets)
        phi = np.exp(-((frames - source.centers_.T) ** 2) / 2)
        numerator, denominator = phi[targets[:, 1] == 1], phi[targets[:, 0] == 1]
        gram = denominator.T @ denominator / len(denominator)
        assert_allclose((gram + 0.1 * np.eye(20)) @ source.theta_, numerator.mean(axis=0), rtol=1e-9)

    @pytest.mark.parametrize("alpha", [0.2, 0.5])
    def test_the_relative_ratio_is_bounded(self, alpha):
        source = TwoClass(alpha=alpha, random_state=0).fit(*gaussian_pair())
        ratio = source.relative_ratio(np.linspace(-3, 4, 50)[:, None])
        assert ratio.min() >= 0
        assert ratio.max() <= 1 / alpha * 1.05

    def test_three_states_are_refused(self):
        with pytest.raises(ValueError, match="TwoClass is for two states, got 3"):
            DensityRatioHMM(ratio=TwoClass()).fit(X3, Y3)


class TestFromClassifier:
    def test_a_classifier_without_probabilities_is_refused(self):
        with pytest.raises(TypeError, match=r"classifier must have predict_proba; LinearSVC\(\) has none"):
            DensityRatioHMM(ratio=FromClassifier(LinearSVC())).fit(X3, Y3)

    def test_soft_targets_become_weighted_copies(self):
        random = np.random.default_rng(0)
        frames, targets = random.normal(size=(100, 2)), random.dirichlet(np.ones(2), 100)
        soft = FromClassifier(LogisticRegression()).fit(frames, targets)
        copies = LogisticRegression().fit(
            np.repeat(frames, 2, axis=0), np.tile([0, 1], 100), sample_weight=targets.ravel()
        )
        assert_allclose(soft.classifier_.coef_, copies.coef_, rtol=1e-3)

    def test_weights_for_a_classifier_that_takes_none(self):
        with pytest.raises(ValueError, match="does not take sample_weight"):
            DensityRatioHMM(ratio=FromClassifier(KNeighborsClassifier())).fit(X3, Y3, sample_weight=np.ones(300))


class TestFromDensities:
    @pytest.mark.parametrize("density", [LogisticRegression(), "cauchy"])
    def test_anything_without_densities_is_refused(self, density):
        with pytest.raises(
            TypeError, match="density must be 'kde', 'gmm' or an object with fit and score_samples, got"
        ):
            DensityRatioHMM(ratio=FromDensities(density)).fit(X3, Y3)

    @pytest.mark.parametrize("density", ["kde", "gmm"])
    def test_a_class_of_one_frame_has_a_density(self, density):
        targets = np.eye(2)[(np.arange(len(X3)) == 0).astype(int)]
        log_ratios = FromDensities(density).fit(X3, targets).log_ratios(X3)
        assert log_ratios[:, 1].argmax() == 0

    def test_a_frame_without_density_in_every_state_is_prediction_only(self):
        source = FromDensities(KernelDensity(kernel="tophat", bandwidth=0.5))
        fitted = DensityRatioHMM(ratio=source, evidence_scale=1.0).fit(X3, Y3)
        far = np.vstack([X3[:5], [[1e3, 1e3]]])
        filtered = fitted.predict_proba(far, method="filter")
        assert_allclose(filtered[5], filtered[4] @ fitted.transmat_)

    def test_the_bandwidth_has_the_best_explicit_held_out_likelihood(self):
        targets = np.ones((len(X3), 1))
        chosen = FromDensities("kde").fit(X3, targets).densities_[0].bandwidth
        widths = X3.std(axis=0).mean() * BANDWIDTHS
        likelihoods = np.zeros(len(widths))
        for k, width in enumerate(widths):
            for held_out in np.array_split(np.arange(len(X3)), 5):
                rest = np.delete(X3, held_out, axis=0)
                log_kernels = -np.square(X3[held_out][:, None] - rest).sum(axis=2) / (2 * width**2)
                log_means = np.logaddexp.reduce(log_kernels, axis=1) - np.log(len(rest))
                likelihoods[k] += np.sum(log_means - X3.shape[1] * np.log(width * np.sqrt(2 * np.pi)))
        assert chosen == widths[likelihoods.argmax()]


class Nearest:
    """A source of two methods: minus the distance to the mean of each state."""

    def fit(self, frames, targets):
        self.means = targets.T @ frames / targets.sum(axis=0)[:, None]

    def log_ratios(self, frames):
        return -np.linalg.norm(frames[:, None] - self.means[None], axis=2)


class TestOwnSource:
    def test_two_methods_are_enough(self):
        fitted = DensityRatioHMM(ratio=Nearest(), window=2, random_state=0).fit(X3, Y3)
        assert fitted.score(X3, Y3) > 0.8

    def test_without_labels(self):
        fitted = DensityRatioHMM(3, ratio=Nearest(), random_state=0).fit(X3)
        assert fitted.predict(X3).shape == (300,)

    def test_a_class_instead_of_an_object(self):
        with pytest.raises(TypeError, match="ratio is the class Nearest: give an object"):
            DensityRatioHMM(ratio=Nearest).fit(X3, Y3)

    def test_a_missing_method(self):
        with pytest.raises(TypeError, match="has no log_ratios"):
            DensityRatioHMM(ratio=LogisticRegression()).fit(X3, Y3)

    def test_a_wrong_shape(self):
        class Wrong(Nearest):
            def log_ratios(self, frames):
                return super().log_ratios(frames)[:, :2]

        with pytest.raises(ValueError, match=r"log ratios of shape \(\d+, 2\) instead of \(\d+, 3\)"):
            DensityRatioHMM(ratio=Wrong()).fit(X3, Y3)

    def test_weights_it_does_not_take(self):
        with pytest.raises(ValueError, match="does not take sample_weight"):
            DensityRatioHMM(ratio=Nearest()).fit(X3, Y3, sample_weight=np.ones(300))
