"""The page: it tells the truth, needs nothing else, and cannot be broken out of."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from conftest import draw_rows
from report_support import HOSTILE, Page, hostile_rows
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import isrlearn
from isrlearn import ISR, ISRClassifier, ISRCov, ISRMean, ISRRegressor, Report, compare
from isrlearn._shown import (
    EXTREMES,
    amounts_of,
    feature_shares,
    rows_to_show,
    show_rows,
    spectrum_band,
)
from isrlearn.display import isolated, visible
from isrlearn.io import read_data
from isrlearn.leaderboard import Entry, Interval, fit_data
from isrlearn.leaderboard._bootstrap import interval, worst_group_draws
from isrlearn.leaderboard._result import Group
from isrlearn.metrics import group_scores
from isrlearn.reporting import geometry_html
from isrlearn.reporting._images import data_address
from isrlearn.reporting._page import script_hash
from isrlearn.reporting._rows import _coded, plane_of
from isrlearn.reporting._scores import worst_estimate

SECTIONS = ["verdict", "groups", "spectrum", "plane", "removed", "diagnosis", "made"]


def cue(random, n=600, shift=3.0):
    """Two classes, two environments, a cue in column 1 that follows the environment."""
    y, e = random.integers(0, 2, n), random.integers(0, 2, n)
    agree = random.uniform(size=n) < 0.9
    e = np.where(agree, y, e)
    y[:20], e[:20] = np.arange(20) % 2, np.arange(20) // 2 % 2  # no cell is tiny
    X = random.normal(size=(n, 5))
    X[:, 0] += 1.5 * y
    X[:, 1] += shift * e
    return X, y, np.array(["left", "right"])[e]


def fitted_page(random, **options):
    X, y, e = cue(random)
    model = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    plain = LogisticRegression().fit(X, y)
    return isrlearn.report(model, X, y, environments=e, before=plain, **options)


def test_the_page_has_every_section_once_with_a_sentence(random):
    page = Page(fitted_page(random, geometry=True).html)
    assert page.sections() == [*SECTIONS[:-1], "geometry", "made"]
    page.check_safe()
    for name in page.sections():
        assert name in page.ids


def test_figures_on_the_page_are_those_of_the_models(random):
    X, y, e = cue(random)
    model = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    plain = LogisticRegression().fit(X, y)
    found = isrlearn.report(model, X, y, environments=e, before=plain)
    for method, fitted in zip(found.methods, (plain, model), strict=True):
        scores = group_scores(y, fitted.predict(X), environments=e)
        assert method.worst.value == scores.worst
        assert method.average == scores.average
        assert sorted(method.groups) == sorted(scores.accuracies.ravel())
        assert f"{100 * scores.worst:.1f}" in Page(found.html).text
    assert found.verdict.before.name == "LogisticRegression"


def test_hostile_names_stay_text(random):
    X, y, e = hostile_rows(random)
    import pandas as pd

    table = pd.DataFrame(X, columns=HOSTILE)
    model = ISRClassifier(ISR(2)).fit(table, y, environments=e)
    made = isrlearn.reporting.made_now(command=" ".join(HOSTILE), notes=HOSTILE)
    found = isrlearn.report(
        model,
        table,
        y,
        environments=e,
        title=" ".join(HOSTILE),
        examples=[HOSTILE[i % len(HOSTILE)] for i in range(len(y))],
        made=made,
    )
    page = Page(found.html)
    page.check_safe()
    assert "{{ 7 * 7 }}" in page.text and HOSTILE[0] in page.text
    assert "\u202e" not in found.html and visible(HOSTILE[5]) in page.text
    again = Report.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.html == found.html


def test_a_hostile_comparison_stays_text(random):
    X, y, e = hostile_rows(random)
    found = compare(
        X, y, environments=e, feature_names=HOSTILE, methods=["erm", "isr"], n_seeds=1, n_draws=50
    )
    page = Page(isrlearn.report(found, title=HOSTILE[2]).html)
    page.check_safe()
    assert HOSTILE[0] in page.text


def test_the_policy_of_the_page_allows_its_own_script_and_no_address(random):
    page = Page(fitted_page(random).html)
    policy = next(v for tag, name, v in page.attributes if tag == "meta" and "default-src" in v)
    assert "default-src 'none'" in policy and script_hash(page.scripts[0]) in policy
    assert "http" not in policy
    assert not re.search(r"https?://", fitted_page(random).html)


def test_a_report_comes_back_from_json(random):
    found = fitted_page(random)
    assert Report.from_dict(json.loads(json.dumps(found.to_dict()))) == found


NONSENSE = {
    "codes": lambda p: p["plane"]["label_codes"].__setitem__(0, 99),
    "negative code": lambda p: p["plane"]["environment_codes"].__setitem__(0, -1),
    "shorter": lambda p: p["plane"]["spurious"].pop(),
    "band": lambda p: p["spectrum"].__setitem__("high", [1.0]),
    "no values": lambda p: p["spectrum"].__setitem__("values", []),
    "negative values": lambda p: p["spectrum"].__setitem__("values", [-1.0]),
    "null": lambda p: p["methods"][0]["worst"].__setitem__("low", None),
    "infinite": lambda p: p["made"].__setitem__("seconds", float("inf")),
    "large": lambda p: p["made"].__setitem__("seconds", 10**400),
    "groups": lambda p: p["methods"][0]["groups"].append(0.5),
    "share": lambda p: p["methods"][0].__setitem__("average", 7.0),
}


@pytest.mark.parametrize("damage", NONSENSE)
def test_a_report_that_makes_no_sense_is_refused(random, damage):
    plain = json.loads(json.dumps(fitted_page(random).to_dict()))
    NONSENSE[damage](plain)
    with pytest.raises(ValueError, match=r"report|groups"):
        Report.from_dict(plain)


@pytest.mark.parametrize("damage", ["drop", "type", "protocol", "image", "list"])
def test_a_damaged_report_is_refused_with_its_place(random, damage):
    plain = json.loads(json.dumps(fitted_page(random).to_dict()))
    if damage == "drop":
        del plain["verdict"]["rows"]
    elif damage == "type":
        plain["methods"][0]["average"] = "<script>"
    elif damage == "protocol":
        plain["protocol"] = 99
    elif damage == "image":
        plain["directions"][0]["most"][0]["image"] = "javascript:alert(1)"
    else:
        plain["groups"] = {"a": 1}
    with pytest.raises(ValueError, match=r"report|protocol|image"):
        Report.from_dict(plain)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "{}", '{"report": 3}', "\x00\xff", "[" * 100_000, "9" * 6000]
)
def test_a_file_that_is_no_result_is_refused(tmp_path, text):
    path = tmp_path / "result.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"result\.json"):
        Report.load(path)


def test_every_group_is_shown_and_so_are_the_ends(random):
    n = 5000
    y = (random.uniform(size=n) < 0.01).astype(int)
    e = np.array(["a", "b"])[(random.uniform(size=n) < 0.02).astype(int)]
    amounts = random.normal(size=(n, 2))
    kept = rows_to_show(amounts, y, e, most=100)
    assert len(kept) <= 100 + 4 * EXTREMES
    for label in (0, 1):
        for place in ("a", "b"):
            here = (y == label) & (e == place)
            assert np.isin(np.flatnonzero(here), kept).sum() >= min(here.sum(), 25)
    for column in amounts.T:
        order = np.argsort(column)
        assert set(order[:EXTREMES]) | set(order[-EXTREMES:]) <= set(kept)


def test_a_model_that_does_not_lean_has_an_upright_line(random):
    X, y, e = cue(random)
    model = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    plain = LogisticRegression().fit(X, y)
    upright = isrlearn.report(model, X, y, environments=e, before=model)
    leaning = isrlearn.report(model, X, y, environments=e, before=plain)
    assert abs(upright.plane.leaning) < 1e-6
    assert abs(leaning.plane.leaning) > 0.2


def test_amounts_do_not_depend_on_where_the_origin_is(random):
    X, y, e = cue(random)
    shift = 100 * random.normal(size=X.shape[1])
    one, two = (ISRMean(1).fit(Z, y, environments=e) for Z in (X, X + shift))
    np.testing.assert_allclose(
        amounts_of(one.subspace_, X), amounts_of(two.subspace_, X + shift), atol=1e-6
    )


def test_feature_shares_are_squared_correlations_within_classes(random):
    X, y, _ = cue(random)
    amount = X[:, 1] + 0.3 * random.normal(size=len(X)) + 5 * y
    inside = lambda v: v - np.where(y == 1, v[y == 1].mean(), v[y == 0].mean())  # noqa: E731
    expected = [np.corrcoef(inside(X[:, j]), inside(amount))[0, 1] ** 2 for j in range(5)]
    np.testing.assert_allclose(feature_shares(X, amount, y), expected, atol=1e-10)


def test_the_interval_is_that_of_resampled_rows(random):
    _, y, e = cue(random, n=8000)
    predicted = np.where(random.uniform(size=8000) < 0.8, y, 1 - y)
    scores = group_scores(y, predicted, environments=e)
    codes = np.unique(np.char.add(y.astype(str), e), return_inverse=True)[1]
    right = (predicted == y)[:, None]
    draws = worst_group_draws(right, np.ones_like(right), codes, n_draws=4000)[:, 0]
    expected = interval(scores.worst, draws)
    found = worst_estimate(scores)
    assert found.value == expected.value
    # At least as wide, and no wider than the worst group alone makes it.
    size = scores.sizes.ravel()[np.argmin(scores.accuracies)]
    alone = 2.2 * np.sqrt(found.value * (1 - found.value) / size)
    assert min(expected.low, found.value - alone) - 0.02 < found.low < expected.low + 0.02
    assert expected.high - 0.02 < found.high < max(expected.high, found.value + alone) + 0.02


def test_few_rows_never_seem_certain():
    y, e = [0, 0, 1, 1], ["a", "b", "a", "b"]
    before = worst_estimate(group_scores(y, [1, 0, 1, 1], environments=e))
    after = worst_estimate(group_scores(y, y, environments=e))
    assert before.value == 0 and after.value == 1
    assert before.high > after.low


def test_strong_differences_stand_out_of_the_band_of_chance(random):
    X, y, e = cue(random, shift=6.0)
    found = ISR(random_state=0).fit(X, y, environments=e)
    page = isrlearn.report(found, X, y, environments=e)
    assert page.spectrum.values[0] > 3 * page.spectrum.high[0]
    assert page.spectrum.n_found == page.spectrum.n_removed == found.n_spurious_
    assert [step.p_value for step in page.spectrum.steps] == found.rank_choice_.p_values.tolist()


@pytest.mark.parametrize("shift", [0.0, 4.0])
def test_what_does_not_differ_lies_in_the_band_of_chance(random, shift):
    """One direction or none differs; of the others 2.5 % should lie above the band."""
    above = []
    for _ in range(12):
        y, e = random.integers(0, 2, 600), random.integers(0, 3, 600)
        X = random.normal(size=(600, 6))
        X[:, 1] += shift * e
        band = spectrum_band(ISR(random_state=0).fit(X, y, environments=e))
        above += (band.values > band.high)[band.rank :].tolist()
    assert np.mean(above) < 0.2


@pytest.mark.parametrize("make", [ISR, ISRMean, ISRCov])
def test_transformers_have_a_page_without_scores(make):
    X, y, e = draw_rows(3, n_environments=3)
    found = isrlearn.report(make(1).fit(X, y, environments=e), X, y, environments=e)
    assert found.methods == () and found.plane is None and len(found.directions) == 1
    assert Page(found.html).sections() == ["verdict", "spectrum", "removed", "diagnosis", "made"]


def test_a_regressor_has_a_page(random):
    X, _, e = cue(random)
    y = X[:, 0] + 0.1 * random.normal(size=len(X))
    model = ISRRegressor(ISR(1)).fit(X, y, environments=e)
    found = isrlearn.report(model, X, y, environments=e)
    assert sorted(found.plane.labels) == ["lowest third", "middle third", "top third"]
    assert not found.plane.has_threshold
    Page(found.html).check_safe()


def test_several_classes_unknown_environments_and_nothing_removed(random):
    X, y, e = draw_rows(5, n_classes=4, n_environments=3)
    e = e.astype(object)
    e[:7] = None
    model = ISRClassifier(ISRMean(2)).fit(X, y, environments=e)
    found = isrlearn.report(model, X, y, environments=e)
    assert "(unknown)" in found.plane.environments and found.plane.boundary is None
    Page(found.html).check_safe()
    nothing = ISRClassifier(ISRMean(0)).fit(X, y, environments=e)
    page = isrlearn.report(nothing, X, y, environments=e)
    assert page.plane is None and page.directions == ()
    Page(page.html).check_safe()


def test_a_thousand_groups_are_cut_and_it_says_so(random):
    n = 6000
    y, e = np.arange(n) % 2, np.arange(n) // 2 % 500
    X = random.normal(size=(n, 4)) + y[:, None]
    model = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    found = isrlearn.report(model, X, y, environments=e)
    text = Page(found.html).text
    assert "more are not shown" in text and "more groups are not drawn" in text
    assert len(found.html) < 1_500_000


def test_the_page_of_many_rows_is_small_and_says_that_it_shows_a_sample(random):
    n = 160_000
    X, y, e = cue(random, n=n)
    table = np.concatenate([X, random.normal(size=(n, 15))], axis=1)
    some = slice(20_000)  # more change the time of the comparison alone
    few = {"methods": ["erm", "isr"], "n_seeds": 1, "n_draws": 20, "test": "random"}
    found = compare(table[some], y[some], environments=e[some], **few)
    assert len(isrlearn.report(found).html.encode()) < 3_000_000
    model = ISRClassifier(ISRMean(1)).fit(table, y, environments=e)
    page = isrlearn.report(model, table, y, environments=e)
    assert len(page.html.encode()) < 3_000_000
    text = " ".join(Page(page.html).text.split())
    assert re.search(r"\d+ of 160000 rows are drawn: a sample", text)
    assert len(page.plane.invariant) < 1300


def test_texts_and_images_of_rows_are_shown(random):
    X, y, e = cue(random)
    model = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    texts = [f"the text of row {i}" for i in range(len(X))]
    found = isrlearn.report(model, X, y, environments=e, examples=texts)
    for row in (*found.directions[0].most, *found.directions[0].least):
        assert row.text == texts[row.row]
    images = random.uniform(size=(len(X), 6, 6, 3))
    shown = isrlearn.report(model, X, y, environments=e, examples=list(images))
    assert shown.directions[0].most[0].image.startswith("data:image/png;base64,")
    large = isrlearn.report(
        model, X, y, environments=e, examples=list(np.zeros((len(X), 200, 100), dtype=np.uint8))
    )
    assert large.directions[0].most[0].image.startswith("data:image/jpeg;base64,")
    with pytest.raises(ValueError, match=r"image has shape"):
        isrlearn.report(model, X, y, environments=e, examples=[np.zeros(3)] * len(X))


def test_ends_are_the_rows_with_most_and_least(random):
    X, y, e = cue(random)
    model = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    found = isrlearn.report(model, X, y, environments=e).directions[0]
    order = np.argsort(amounts_of(model.subspace_, X)[:, 0])
    assert [row.row for row in found.most] == order[::-1][:EXTREMES].tolist()
    assert [row.row for row in found.least] == order[:EXTREMES].tolist()


def test_what_has_no_report_is_refused(random):
    with pytest.raises(TypeError, match="LogisticRegression has no report"):
        isrlearn.report(LogisticRegression())
    X, y, e = cue(random)
    with pytest.raises(ValueError, match="needs rows"):
        isrlearn.report(ISRMean(1).fit(X, y, environments=e))


def test_a_comparison_without_isr_has_scores_alone(random):
    X, y, e = cue(random)
    found = compare(X, y, environments=e, methods=["erm"], n_seeds=1, n_draws=20)
    page = isrlearn.report(found)
    assert Page(page.html).sections() == ["verdict", "groups", "made"]


def test_the_verdict_says_what_the_figures_bear_out(random):
    better = fitted_page(random)
    before, after = better.verdict.before.worst, better.verdict.after.worst
    words = better.verdict.sentence
    assert ("better, by more than chance" in words) == (after.low > before.high)
    assert ("overlap" in words) == (after.low <= before.high and before.low <= after.high)


def test_the_page_is_shown_in_a_notebook_in_a_frame_of_its_own(random):
    html = fitted_page(random, title=HOSTILE[0])._repr_html_()
    assert html.startswith("<iframe") and html.count("<") == 2


def test_pictures_of_the_method_are_seen_as_the_script_would_draw_them():
    from isrlearn.reporting import _geometry

    page = Page(geometry_html())
    page.check_safe()
    assert page.tags.count("svg") == 2
    means = _geometry.mean_scene()["shapes"]
    triangle = next(shape for shape in means if shape["kind"] == "triangle")
    space = np.array([[float(v) for v in p.split(",")] for p in triangle["space"].split()])
    plane = next(shape for shape in means if shape["kind"] == "plane")
    corners = np.array([[float(v) for v in p.split(",")] for p in plane["space"].split()])
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    # The means lie in the plane, and the arrow stands upright on it.
    assert np.abs((space - corners[0]) @ normal).max() < 0.02 * np.linalg.norm(normal)
    arrow = next(shape for shape in means if shape["kind"] == "axis")
    ends = np.array([[float(v) for v in p.split(",")] for p in arrow["space"].split()])
    along = ends[1] - ends[0]
    assert abs(along @ normal) > 0.99 * np.linalg.norm(along) * np.linalg.norm(normal)


def test_ellipsoids_differ_across_the_arrow_only():
    from isrlearn.reporting import _geometry

    extents = []
    for e in ("e0", "e1"):
        wires = [s for s in _geometry.covariance_scene()["shapes"] if s["kind"] == f"{e} wire"]
        points = np.array(
            [[float(v) for v in p.split(",")] for wire in wires for p in wire["space"].split()]
        )
        extents.append(np.abs(points @ _geometry.MIXED).max(axis=0))
    assert abs(extents[0][0] - extents[1][0]) < 0.02
    assert np.all(extents[1][1:] > 2 * extents[0][1:])


def test_a_plane_needs_a_removal_and_a_head(random):
    X, y, e = cue(random)
    isr = ISRMean(1).fit(X, y, environments=e)
    shown = show_rows(X, y, e, subspace=isr.subspace_, before=None, after=None)
    assert plane_of(shown) is None


def test_rows_have_the_numbers_that_they_have_in_the_data(random):
    X, y, e = cue(random)
    X = np.column_stack([X, np.arange(len(X))])
    found = compare(
        X, y, environments=e, methods=["erm", "isr"], n_seeds=1, n_draws=20, test="random"
    )
    shown = found.scene.shown()
    np.testing.assert_array_equal(shown.features[:, -1], shown.rows)


def test_a_series_of_texts_is_taken_row_by_row(random):
    import pandas as pd

    X, y, e = cue(random)
    model = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    texts = pd.Series([f"text {i}" for i in range(len(X))], index=random.permutation(len(X)))
    found = isrlearn.report(model, X, y, environments=e, examples=texts).directions[0]
    assert all(row.text == f"text {row.row}" for row in (*found.most, *found.least))
    with pytest.raises(ValueError, match="examples has nothing for row"):
        isrlearn.report(model, X, y, environments=e, examples=["one"])


def test_the_line_leans_by_the_weight_on_what_is_removed_alone(random):
    """A kept feature that goes with the removed one is not charged to it."""
    X, y, e = cue(random)
    X[:, 2] = X[:, 1] + 0.3 * random.normal(size=len(X))
    model = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    direction = model.subspace_.directions[0]
    plain = LogisticRegression().fit(X, y)
    plain.coef_ = plain.coef_ - (plain.coef_ @ direction)[:, None] * direction
    page = isrlearn.report(model, X, y, environments=e, before=plain)
    assert abs(page.plane.leaning) < 1e-8


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_what_is_shrunk_is_not_called_removed(random, scale):
    X, y, e = cue(random)
    model = ISRClassifier(ISRMean(1, scale=scale)).fit(X, y, environments=e)
    found = isrlearn.report(model, X, y, environments=e)
    text = " ".join(Page(found.html).text.split())
    assert "no longer" not in text and "whatever was removed" not in text
    assert ("shrunk to 50 %" in text) == (scale == 0.5)
    assert (found.plane is None) == (scale == 1.0)


def test_a_name_looks_the_same_in_both_charts(random):
    n = 2400
    y, e = np.arange(n) % 2, np.arange(n) // 2 % 12
    X = random.normal(size=(n, 4)) + y[:, None]
    places = e.astype(object)
    places[:50] = None
    model = ISRClassifier(ISRMean(1)).fit(X, y, environments=places)
    found = isrlearn.report(model, X, y, environments=places)
    assert list(found.plane.environments)[:-1] == [str(i) for i in range(12)]
    assert found.plane.environments[-1] == "(unknown)"


def test_unknown_labels_come_last_and_are_not_a_name():
    names, codes = _coded(np.array(["unknown", None, "a"], dtype=object))
    assert names == ("a", "unknown", "(unknown)") and codes.tolist() == [1, 2, 0]


def test_nothing_unseen_is_left_in_a_name():
    for text in ("\x1b[2J", "\x9b31m", "\ud800", "\u202e", "\x00"):
        assert visible(text).isascii() and visible(text).isprintable()
    assert visible("שלום ünï 😀\t\n") == "שלום ünï 😀\t\n"
    assert isolated("a\u2069b").count("\u2069") == 1


def test_a_page_of_halves_of_characters_can_be_written(random, tmp_path):
    X, y, e = cue(random)
    places = np.where(e == "left", "left\ud83d", "right \x1b[31m").astype(object)
    found = compare(X, y, environments=places, methods=["erm", "isr"], n_seeds=1, n_draws=20)
    isrlearn.report(found, title="bad\udcff.csv").save(tmp_path / "page.html")
    found.to_csv(tmp_path / "table.csv")
    assert "\x1b" not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_commas_in_names_lose_no_group():
    groups = (Group("a", "b, c", 3), Group("a, b", "c", 4))
    entry = Entry(
        "k", "T", "", 0.5, 0.5, Interval(0.1, 0, 1), "", (0.1, 0.9), {}, {}, None, (), (), 0, 0
    )
    accuracies = [v for n, v in entry.record(groups).items() if n.startswith("accuracy ")]
    assert sorted(accuracies) == [0.1, 0.9]


def test_the_verdict_of_a_comparison_is_that_of_the_same_rows(random):
    X, y, e = cue(random)
    found = compare(X, y, environments=e, methods=["erm", "isr"], n_seeds=1, n_draws=200)
    verdict = isrlearn.report(found).verdict
    assert verdict.headline == found.recommendation.headline
    assert found.recommendation.reason in verdict.sentence
    ours = [method.name for method in isrlearn.report(found).methods if method.ours]
    assert ours == [found.recommendation.title]


def test_mistakes_are_told_in_words(random):
    X, y, e = cue(random)
    model = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    with pytest.raises(ValueError, match="one label per row"):
        isrlearn.report(model, X[:100], y, environments=e)
    with pytest.raises(ValueError, match="4 features"):
        isrlearn.report(model, X[:, :4], y, environments=e)
    with pytest.raises(NotFittedError):
        isrlearn.report(ISRClassifier(), X, y, environments=e)


def test_a_head_that_is_not_linear_has_a_page_without_the_plane(random):
    from sklearn.tree import DecisionTreeClassifier

    X, y, e = cue(random)
    model = ISRClassifier(ISRMean(1), DecisionTreeClassifier(max_depth=2))
    model.fit(X, y, environments=e)
    found = isrlearn.report(model, X, y, environments=e)
    assert found.plane is None and found.methods and found.directions


@pytest.mark.parametrize("kind", ["whole numbers", "floats", "missing"])
def test_images_outside_their_range_are_refused_and_missing_ones_left_out(random, kind):
    import pandas as pd

    X, y, e = cue(random)
    model = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    if kind == "missing":
        found = isrlearn.report(
            model, X, y, environments=e, examples=pd.Series([np.nan] * 600)
        ).directions[0]
        assert found.most[0].values and found.most[0].text is None
    elif kind == "floats":
        with pytest.raises(ValueError, match="floats from 0 to 1"):
            isrlearn.report(model, X, y, environments=e, examples=[np.full((4, 4), 200.0)] * 600)
    else:
        images = [np.full((4, 4), 200)] * 600
        found = isrlearn.report(model, X, y, environments=e, examples=images).directions[0]
        assert found.most[0].image == data_address(np.full((4, 4), 200, dtype=np.uint8))


def test_a_fit_whose_test_rows_have_no_environment_has_a_page(random, tmp_path):
    X, y, e = cue(random)
    split = np.where(np.arange(len(y)) % 3 == 0, 2, 0)
    places = np.where(split == 2, None, e).astype(object)
    known = np.where(split == 2, "", e)
    np.savez(tmp_path / "a.npz", features=X, labels=y, environments=known, split=split)
    data = read_data(tmp_path / "a.npz")
    data = replace(data, environments=places)
    page = isrlearn.report(fit_data(data))
    assert "fitted on" in page.verdict.rows and "chance" not in page.verdict.sentence


def test_tests_on_a_sample_say_so(random):
    n = 30_000
    X, y, e = cue(random, n=n)
    found = compare(X, y, environments=e, methods=["erm", "isr"], n_seeds=1, n_draws=20)
    page = isrlearn.report(found)
    assert "a sample" not in page.tests.sentence  # 18 000 rows to train on
    more = np.tile(X, (2, 1)), np.tile(y, 2), np.tile(e, 2)
    found = compare(*more[:2], environments=more[2], methods=["isr"], n_seeds=1, n_draws=20)
    assert re.search(
        r"a sample of \d+ of 3[56]\d+ training rows", isrlearn.report(found).tests.sentence
    )


def test_rows_may_have_numbers_of_their_own(random):
    X, y, e = cue(random)
    numbers = random.permutation(10_000)[: len(X)]
    isr = ISRMean(1).fit(X, y, environments=e)
    counted, named = (
        isrlearn.report(isr, X, y, environments=e, rows=rows).directions[0]
        for rows in (None, numbers)
    )
    assert [row.row for row in named.most] == [int(numbers[row.row]) for row in counted.most]
