"""The diagnosis says what cannot work, and what would."""

import numpy as np
import pandas as pd
import pytest
from conftest import draw_rows
from scipy.stats import f as f_distribution

from isrlearn import ISR, CellMoments, Diagnosis, ISRClassifier, ISRCov, ISRMean, ISRRegressor
from isrlearn.datasets import LinearUnitTest, make_linear_gaussian
from isrlearn.diagnosis._shares import stability_of_target
from isrlearn.exceptions import EmptyCellWarning, SingleEnvironmentWarning
from isrlearn.subspace._rank_test import RankChoice, RankStep


def seed_of(random):
    return int(random.integers(2**31))


def finding(diagnosis, code):
    return next(f for f in diagnosis.findings if f.code == code)


@pytest.mark.parametrize("example", ["3", "3s"])
@pytest.mark.parametrize("E", [2, 3, 4, 5])
def test_too_few_environments_are_named_with_the_number_needed(random, example, E):
    """E <= d_s and equal covariances: nothing can work. Two of three draws at least say so."""
    said = 0
    for _ in range(3):
        X, y, e = LinearUnitTest(example, E, seed=seed_of(random)).sample(3000)
        diagnosis = ISRClassifier(ISR(random_state=0)).fit(X, y, environments=e).diagnose()
        if "too_few_environments" in diagnosis.warnings:
            said += 1
            text = finding(diagnosis, "too_few_environments")
            assert f"all that {E} environments are sure to show" in text.text
            assert "d_s + 1 environments" in text.advice
            assert f"at least {E + 1}" in text.advice
            assert "there may be more" in diagnosis.verdict
    assert said >= 2


def test_a_given_rank_beyond_the_means_names_the_environments_needed(random):
    X, y, e = LinearUnitTest("3s", 3, seed=seed_of(random)).sample(500)
    diagnosis = ISR(5).fit(X, y, environments=e).diagnose()
    assert "beyond_the_means" in diagnosis.warnings
    assert "5 directions need 6 environments" in finding(diagnosis, "beyond_the_means").advice
    assert diagnosis.tests is None


def test_enough_environments_are_no_warning(random):
    quiet = 0
    for _ in range(5):
        X, y, e = LinearUnitTest("3s", 8, seed=seed_of(random)).sample(3000)
        diagnosis = ISR(random_state=0).fit(X, y, environments=e).diagnose()
        quiet += not diagnosis.warnings
        assert diagnosis.means.rank >= 4
    assert quiet >= 3


@pytest.mark.parametrize("example", ["1", "1s"])
@pytest.mark.parametrize("E", [2, 3, 6])
def test_causes_of_the_target_are_a_warning(random, example, E):
    warned = 0
    for _ in range(3):
        X, y, e = LinearUnitTest(example, E, seed=seed_of(random)).sample(2000)
        diagnosis = ISRRegressor(ISR(random_state=0)).fit(X, y, environments=e).diagnose()
        warned += bool({"target_is_an_effect", "nothing_is_invariant"} & {*diagnosis.warnings})
    assert warned >= 2


def test_causes_of_the_target_over_decades_are_a_warning(random):
    """Beside effects of constant noise their variance is lost where it is small."""
    problem = LinearUnitTest("1s", 8, seed=seed_of(random))
    problem.parameters["spread"][:] = np.geomspace(1e-3, 10, 8)
    X, y, e = problem.sample(2000)
    diagnosis = ISRRegressor(ISR(random_state=0)).fit(X, y, environments=e).diagnose()
    assert {"target_is_an_effect", "nothing_is_invariant"} & {*diagnosis.warnings}


def test_effects_that_shift_are_no_warning_of_causes(random):
    e, y = np.repeat(np.arange(5), 400), random.normal(size=2000)
    X = random.normal(size=(2000, 5)) + 2 * y[:, None]
    X[:, :3] += 3 * np.eye(5, 3)[e]
    isr = ISR(alpha=0.001, n_permutations=999, random_state=0)
    diagnosis = ISRRegressor(isr).fit(X, y, environments=e).diagnose()
    assert diagnosis.n_spurious == 3
    assert "target_is_an_effect" not in diagnosis.warnings


def test_with_few_rows_the_share_of_the_target_is_not_known(random):
    X, y, e = draw_rows(seed_of(random), n_features=40, per_cell=11)
    assert ISR(1).fit(X, y, environments=e).diagnose().target_share_removed is None


def test_environments_that_do_not_differ_are_said_not_to(random):
    X = random.normal(size=(900, 4))
    y, e = random.integers(0, 2, 900), random.integers(0, 3, 900)
    diagnosis = ISR(alpha=0.001, n_permutations=999, random_state=0).fit(X, y, environments=e)
    diagnosis = diagnosis.diagnose()
    assert "nothing_differs" in {f.code for f in diagnosis.findings}
    assert "nothing is removed" in diagnosis.verdict
    assert diagnosis.angle is None


@pytest.mark.parametrize(
    ("equal", "code"),
    [("means", "no_mean_difference"), ("covariances", "no_covariance_difference")],
)
def test_an_order_that_shows_nothing_is_named(random, equal, code):
    said = 0
    for _ in range(3):
        given = {"mu_e": [1.0, 1.0]} if equal == "means" else {"sigma_e": 1.0}
        model = make_linear_gaussian(5, 4, 2, random_state=seed_of(random), **given)
        X, y, e = model.sample(1000, random_state=seed_of(random))
        diagnosis = ISR(random_state=0).fit(X, y, environments=e).diagnose()
        said += code in {f.code for f in diagnosis.findings}
    assert said >= 2


def test_the_interval_of_the_angle_is_as_large_as_the_error(random):
    """The true angle is below the upper end in most draws, and the interval is not idle."""
    inside, widths = 0, []
    for _ in range(8):
        model = make_linear_gaussian(4, 4, 2, random_state=seed_of(random))
        X, y, e = model.sample(1500, random_state=seed_of(random))
        isr = ISR(2, random_state=0).fit(X, y, environments=e)
        found = ISR(random_state=0).fit(X, y, environments=e)
        if found.n_spurious_ != 2:
            continue
        high = found.diagnose().angle[2]
        inside += isr.subspace_.angles_to(model.B.T).max() <= 1.5 * high
        widths.append(high)
    assert inside >= len(widths) - 3
    assert np.median(widths) < 0.5


def test_the_share_of_the_target_is_one_when_the_cue_is_all(random):
    e, y = np.repeat([0, 1, 2], 1000), np.tile([0, 1], 1500)
    cue = np.array([1.0, 3.0, 6.0])[e] * (2 * y - 1)
    X = random.normal(size=(3000, 3))
    X[:, 0] += cue
    for isr in (ISR(random_state=0), ISR(1), ISRCov(1)):
        diagnosis = isr.fit(X, y, environments=e).diagnose()
        known = isinstance(isr, ISR) or abs(isr.spurious_components_[0, 0]) > 0.99
        assert not known or diagnosis.target_share_removed > 0.95
        assert not known or "target_information_removed" in {f.code for f in diagnosis.findings}
    assert (
        ISRMean(1).fit(X, y, environments=e).diagnose().target_share_removed is None
    )  # no scatter


def test_the_features_removed_are_named_whatever_their_units(random):
    e, y = np.repeat([0, 1, 2], 1000), np.tile([0, 1], 1500)
    cue = np.array([-3.0, 0.0, 3.0])[e]
    X = random.normal(size=(3000, 4)) * [1, 1e4, 1, 1]
    X[:, 0] += cue
    X[:, 3] = X[:, 0] + 0.1 * random.normal(size=3000)
    frame = pd.DataFrame(X, columns=["scanner", "income", "age", "lens"])
    diagnosis = ISRClassifier(ISR(1)).fit(frame, y, environments=e).diagnose()
    shares = diagnosis.feature_shares_removed
    within = np.corrcoef((X @ ISR(1).fit(X, y, environments=e).subspace_.functionals.T).T, X.T)[0]
    np.testing.assert_allclose(shares, within[1:] ** 2, atol=0.01)  # y tells nothing here
    assert shares[[0, 3]].min() > 0.8
    assert shares[[1, 2]].max() < 0.1
    first = diagnosis._most_removed().split(", ")
    assert {text.split()[0] for text in first[:2]} == {"scanner", "lens"}


def shifted_causes(random, slopes):
    """Draw y from x; the cause x0 shifts with the environment, and its slope may."""
    e = np.repeat(np.arange(4), 800)
    X = random.normal(size=(3200, 4))
    X[:, 0] += np.arange(4)[e]
    return X, X[:, 0] * np.asarray(slopes)[e] + X[:, 1] + random.normal(size=3200), e


def test_a_regression_that_is_stable_without_removal_is_a_warning(random):
    warned = []
    for slopes in ([1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 2.0]):
        X, y, e = shifted_causes(random, slopes)
        isr = ISR(alpha=0.001, n_permutations=999, random_state=0)
        diagnosis = ISRRegressor(isr).fit(X, y, environments=e).diagnose()
        warned.append("target_is_stable" in diagnosis.warnings)
    assert warned == [True, False]


def test_the_test_of_stability_is_that_of_least_squares(random):
    X, y, e = shifted_causes(random, [1.0, 1.0, 1.1, 1.0])
    moments = CellMoments.from_rows(np.column_stack([X, y]), np.zeros(len(y)), environments=e)

    def rest(rows):
        design = np.column_stack([np.ones(rows.sum()), X[rows]])
        return float(np.linalg.lstsq(design, y[rows], rcond=None)[1][0])

    apart, together = sum(rest(e == k) for k in range(4)), rest(e >= 0)
    ratio = (together - apart) / 15 / (apart / (3200 - 20))
    np.testing.assert_allclose(stability_of_target(moments), f_distribution.sf(ratio, 15, 3180))
    assert np.isnan(stability_of_target(moments.take(np.arange(4) == 0)))


def test_a_method_that_looks_elsewhere_says_where_to_look(random):
    e, y = np.repeat([0, 1, 2], 1000), np.tile([0, 1], 1500)
    X = random.normal(size=(3000, 3))
    X[:, 0] += np.array([-3.0, 0.0, 3.0])[e]
    isr = ISRCov("auto", alpha=0.001, n_permutations=999, random_state=0)
    diagnosis = isr.fit(X, y, environments=e).diagnose()
    assert "use ISRMean('auto')" in finding(diagnosis, "nothing_differs").advice
    assert "of covariances" in diagnosis.verdict


def test_one_class_compared_shows_what_one_class_can(random):
    X, y, e = draw_rows(seed_of(random), per_cell=60)
    of_one = ISR(1, condition_on=0).fit(X, y, environments=e).diagnose()
    assert of_one.most_by_means == len(np.unique(e)) - 1


def test_what_is_shrunk_is_not_said_to_be_removed(random):
    X, y, e = draw_rows(seed_of(random), per_cell=60)
    assert (
        "1 direction shrunk to 0.5"
        in ISR(1, scale=0.5).fit(X, y, environments=e).diagnose().verdict
    )


def test_many_environments_are_summarised(random):
    e = np.repeat(np.arange(40), 30)
    X, y = random.normal(size=(1200, 2)), random.integers(0, 2, 1200)
    diagnosis = ISRMean(1).fit(X, y, environments=e).diagnose()
    assert max(map(len, str(diagnosis).splitlines())) < 200
    assert "median" in str(diagnosis)
    assert "median" in diagnosis._repr_html_()


def test_an_empty_cell_is_a_finding(random):
    X, y, e = draw_rows(seed_of(random), per_cell=60)
    kept = (y == 0) | (e != 1)
    with pytest.warns(EmptyCellWarning):
        isr = ISR(random_state=0).fit(X[kept], y[kept], environments=e[kept])
    assert "bad_cells" in isr.diagnose().warnings


def test_one_invariant_direction_of_two_is_seen_as_such(random):
    e, y = random.integers(0, 2, 2000), random.integers(0, 2, 2000)
    cue = np.array([-3.0, 3.0])[e]
    X = np.column_stack([y, cue]) + random.normal(size=(2000, 2))
    isr = ISR(alpha=0.001, n_permutations=999, random_state=0).fit(X, y, environments=e)
    assert isr.n_spurious_ == 1
    assert "nothing_is_invariant" not in isr.diagnose().warnings
    alone = ISR(random_state=0).fit(X[:, 1:], y, environments=e)
    assert alone.n_spurious_ == 0
    assert "nothing_is_invariant" in alone.diagnose().warnings


@pytest.mark.parametrize("estimator", [ISR(), ISRMean(), ISRClassifier(), ISRRegressor()], ids=str)
def test_without_environments_the_diagnosis_says_so(random, estimator):
    X, y, _ = draw_rows(seed_of(random))
    with pytest.warns(SingleEnvironmentWarning):
        diagnosis = estimator.fit(X, y).diagnose()
    assert diagnosis.warnings[0] == "no_environments"
    assert "no environments were given" in str(diagnosis)


def test_the_angle_is_that_of_the_order_in_use(random):
    n = 3000
    e, y = random.integers(0, 3, n), random.integers(0, 2, n)
    X = random.normal(size=(n, 5))
    X[:, 4] += np.array([-3, 0, 3.0])[e]
    X[:, 3] *= np.array([1, 1.5, 2])[e]
    isr = ISRCov("auto", alpha=0.001, n_permutations=999, random_state=0)
    diagnosis = isr.fit(X, y, environments=e).diagnose()
    assert diagnosis.angle[1] < 0.3


@pytest.mark.parametrize(
    ("n_wrong", "angle", "warned"),
    [(0, 1.5, False), (1, 1.5, False), (5, 1.5, True), (80, 1.5, True), (80, 0.6, True)],
)
def test_directions_that_some_resamples_miss_are_uncertain(
    random, monkeypatch, n_wrong, angle, warned
):
    draws = np.repeat([0.1, angle], [100 - n_wrong, n_wrong])
    monkeypatch.setattr("isrlearn.diagnosis._uncertainty.angle_draws", lambda *_: draws)
    X, y, e = draw_rows(seed_of(random), per_cell=60)
    diagnosis = ISR(random_state=0).fit(X, y, environments=e).diagnose()
    assert ("uncertain_directions" in diagnosis.warnings) == warned
    if warned:
        text = finding(diagnosis, "uncertain_directions").text
        assert f"may be wrong by {np.degrees(angle):.0f}" in text


@pytest.mark.parametrize("method", [ISR, ISRMean, ISRCov])
def test_every_method_can_be_diagnosed_and_shown(random, method):
    X, y, e = draw_rows(seed_of(random), per_cell=60)
    names = np.array(["<b>&", "lab", "field"])[e]
    diagnosis = method("auto", random_state=0).fit(X, y, environments=names).diagnose()
    assert isinstance(diagnosis, Diagnosis)
    text, html = str(diagnosis), diagnosis._repr_html_()
    assert str((y == 0).sum() - 0) or text
    for count in diagnosis.counts.ravel():
        assert str(count) in text
        assert f"<td>{count}</td>" in html
    assert "<b>&" in text
    assert "<b>" not in html
    assert "&lt;b&gt;&amp;" in html
    with pytest.raises(AttributeError):
        diagnosis.verdict = "all is well"


@pytest.mark.parametrize("d", [5, 100])
def test_the_share_of_the_target_is_that_of_the_separation_in_units_of_noise(random, d):
    n = 3000
    e, y = random.integers(0, 3, n), random.integers(0, 2, n)
    X = random.normal(size=(n, d)) @ random.normal(size=(d, d))
    X += np.outer(y, random.normal(size=d)) + np.outer(e, 9 * random.normal(size=d))
    isr = ISR(1).fit(X, y, environments=e)
    rest = (
        X
        - np.array([[X[(y == c) & (e == k)].mean(axis=0) for k in range(3)] for c in (0, 1)])[y, e]
    )
    inverse = np.linalg.inv(rest.T @ rest / n)
    delta = np.array([X[y == c].mean(axis=0) for c in (0, 1)])
    delta, D = delta[1] - delta[0], isr.spurious_components_
    along = D @ inverse @ delta
    share = along @ np.linalg.solve(D @ inverse @ D.T, along) / (delta @ inverse @ delta)
    assert isr.diagnose().target_share_removed == pytest.approx(share, abs=0.01)


def test_stability_depends_neither_on_units_nor_on_idle_columns(random):
    X, y, e = shifted_causes(random, [1.0, 1.0, 1.1, 1.0])

    def stability(X):
        rows = np.column_stack([X, y])
        return stability_of_target(CellMoments.from_rows(rows, np.zeros(len(y)), e))

    plain = stability(X)
    mixed = X @ random.normal(size=(4, 4)) * [1, 1e-7, 1e5, 1]
    idle = np.column_stack([X, np.ones((len(X), 3)), X[:, 0] + X[:, 1]])
    assert stability(mixed) == pytest.approx(plain, rel=1e-3, abs=1e-12)
    assert stability(idle) == pytest.approx(plain, rel=1e-3, abs=1e-12)
    exact = np.column_stack([X, X @ [1.0, 2.0, 3.0, 4.0]])
    assert stability_of_target(CellMoments.from_rows(exact, np.zeros(len(y)), e)) == 1
    exact[:, -1] += 1e-6 * X[:, 0] * e  # of the size of rounding errors
    assert stability_of_target(CellMoments.from_rows(exact, np.zeros(len(y)), e)) == 1


def test_collinear_features_have_no_more_directions_than_they_span(random):
    e, y = random.integers(0, 3, 2000), random.integers(0, 2, 2000)
    # A triangle, turned: three drawn means can lie on a line, which has one direction only.
    corner = random.uniform(0, 2 * np.pi) + 2 * np.pi * e / 3
    s = random.normal(size=(2000, 2)) + 3 * np.column_stack([np.cos(corner), np.sin(corner)])
    X = np.column_stack([s, s.sum(axis=1)])
    diagnosis = ISR(random_state=0).fit(X, y, environments=e).diagnose()
    assert "nothing_is_invariant" in diagnosis.warnings
    assert "all 2 direction(s)" in finding(diagnosis, "nothing_is_invariant").text


def test_a_p_value_between_the_levels_is_a_hint(random):
    steps = (RankStep(0, 0.002, 0.002, 0.3, 0.01, 1), RankStep(1, 0.004, 0.9, 0.004, 0.0022, 0))
    found = RankChoice(1, 0.01, 449, steps)
    e, y = np.repeat([0, 1, 2], 600), np.tile([0, 1], 900)
    X = random.normal(size=(1800, 4)) + np.outer(3 * e, [1, 0, 0, 0])
    isr = ISR(1).fit(X, y, environments=e)
    isr._found = isr._found._replace(choice=found)
    diagnosis = isr.diagnose()
    assert "p = 0.004" in finding(diagnosis, "hint_of_more").text
    assert "a hint only" in diagnosis.verdict
    assert "level 0.01 and 0.0022" in str(diagnosis)


def test_nothing_compared_is_no_error(random):
    X, y, e = draw_rows(seed_of(random), per_cell=60)
    assert "0 directions" in ISR(0, condition_on=9).fit(X, y, environments=e).diagnose().verdict
