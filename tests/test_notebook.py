"""What a notebook shows: whole HTML, names that stay text, figures that are the object's."""

from html.parser import HTMLParser

import numpy as np
import pytest
from conftest import draw_rows
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isrlearn import (
    ISR,
    CellMoments,
    ISRClassifier,
    ISRCov,
    ISRMean,
    ISRRegressor,
    RankChoice,
    RankStep,
    Subspace,
    baselines,
    compare,
    plots,
    select,
)
from isrlearn.display import MOST_COLUMNS, MOST_ROWS, table
from isrlearn.metrics import group_scores

HOSTILE = "<script>alert('x')</script>&\"</td>"


class Page(HTMLParser):
    """Tags, texts and tables of a piece of HTML; an end without its beginning is an error."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.texts, self.rows = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.seen.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.open[-1:] and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data

    @property
    def by_head(self):
        """Cells of each row by its head."""
        return {row[0]: row[1:] for row in self.rows}


def shown(thing):
    """Return the page of a thing whose HTML is whole and accessible."""
    page = Page(thing if isinstance(thing, str) else thing._repr_html_())
    assert not page.open, "tags that are not closed"
    tags = [tag for tag, _ in page.seen]
    assert not {"script", "img", "iframe", "b"} & set(tags)
    assert tags.count("caption") == tags.count("table")
    assert all(a.get("scope") in ("row", "col") for tag, a in page.seen if tag == "th")
    assert not any(name.startswith("on") for _, attributes in page.seen for name in attributes)
    return page


def hostile_rows(random):
    """Rows whose classes and environments are named to break out of a table."""
    X, y, e = draw_rows(int(random.integers(2**32)), per_cell=40)
    return X, np.array([HOSTILE, "well"])[y], np.array([HOSTILE, "lab", "field"])[e]


def test_moments_show_the_rows_of_each_cell(random):
    X, y, e = hostile_rows(random)
    moments = CellMoments.from_rows(X, y, e)
    page = shown(moments)
    assert page.rows[0] == ["class", *moments.environments]
    for label, counts in zip(moments.classes, moments.counts_table(), strict=True):
        assert page.by_head[label] == [str(n) for n in counts]
    assert shown(CellMoments.empty(3)).rows == []


def test_group_scores_show_every_accuracy_and_name_the_worst(random):
    X, y, e = hostile_rows(random)
    scores = group_scores(y, random.permutation(y), environments=e)
    page = shown(scores)
    for label, accuracies, sizes in zip(
        scores.classes, scores.accuracies, scores.sizes, strict=True
    ):
        expected = [f"{a:.3f} of {n:g}" for a, n in zip(accuracies, sizes, strict=True)]
        assert page.by_head[label] == expected
    caption = page.texts[0]
    assert f"{scores.worst:.3f}" in caption
    assert f"{scores.average:.3f}" in caption
    assert all(name in caption for name in scores.worst_group)


def test_a_group_without_rows_shows_a_dash():
    scores = group_scores([0, 1, 1], [0, 1, 0], environments=["a", "a", "b"])
    assert shown(scores).by_head["0"] == ["1.000 of 1", "– of 0"]


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_a_subspace_shows_its_eigenvalues(random, rank):
    X, y, e = hostile_rows(random)
    found = ISRMean(rank).fit(X, y, environments=e).subspace_
    page = shown(found)
    assert f"{rank} of {X.shape[1]} directions" in page.texts[0]
    assert len(page.rows) == 1 + rank
    for i in range(rank):
        value, leading = page.by_head[str(i + 1)]
        assert float(value) == pytest.approx(found.spectrum[i], rel=1e-3)
        j = np.argmax(np.abs(found.directions[i]))
        assert leading.startswith(f"x{j} {found.directions[i, j]:+.2f}")


def test_tests_of_the_rank_show_every_step(random):
    X, y, e = hostile_rows(random)
    choice = ISR(random_state=0).fit(X, y, environments=e).rank_choice_
    page = shown(choice)
    assert len(page.rows) == 1 + len(choice.steps)
    for step in choice.steps:
        cells = page.by_head[str(step.n_removed)]
        assert float(cells[0]) == pytest.approx(step.p_value, rel=1e-2)
        assert cells[-1] == str(step.block)
    untested = RankChoice(0, 0.05, 99, (RankStep(0, 0.5, 0.5, float("nan"), 0.05, 0),))
    assert shown(untested).by_head["0"] == ["0.5", "0.5", "–", "0.05", "0"]


def test_a_selection_shows_all_settings_the_best_first(random):
    X, y, e = hostile_rows(random)
    grid = {"isr": [ISRMean(0), ISRMean(1), ISRMean(1, condition_on=[HOSTILE]), ISRMean(99)]}
    found = select(X, y, environments=e, grid=grid)
    rows = shown(found).rows
    assert len(rows) == 1 + len(found.settings)
    scores = [row[1] for row in rows[1:-1]]
    assert scores == sorted(scores, reverse=True)
    assert sorted(scores) == sorted(f"{s:.3f}" for s in found.scores[:3].mean(axis=1))
    assert rows[-1][1:] == ["–", found.reasons[3]]


def test_a_comparison_shows_every_method(random):
    X, y, e = hostile_rows(random)
    found = compare(X, y, environments=e, methods=["erm", "isr"], n_seeds=1, n_draws=50)
    page = shown(found)
    assert found.verdict in page.texts
    for entry in found.entries:
        cells = page.by_head[entry.title]
        assert cells[0] == f"{100 * entry.average:.1f}"
        assert cells[2].split()[0] == f"{100 * entry.worst_group.value:.1f}"
        assert shown(entry).by_head["average"] == [cells[0]]
    for note in found.notes:
        assert note in page.texts


def test_a_method_that_failed_is_told(random):
    class Refuses(baselines.LinearProbe):
        def fit(self, X, y, environments=None):
            raise ValueError(HOSTILE)

    X, y, e = hostile_rows(random)
    found = compare(X, y, environments=e, methods=["erm", Refuses()], n_seeds=1, n_draws=50)
    assert any(HOSTILE in text for text in shown(found).texts)


@pytest.mark.parametrize("estimator", [ISR(random_state=0), ISRMean(1), ISRClassifier()])
def test_a_diagnosis_is_whole_too(random, estimator):
    X, y, e = hostile_rows(random)
    diagnosis = estimator.fit(X, y, environments=e).diagnose()
    page = shown(diagnosis)
    for name, value in diagnosis.facts():
        assert page.by_head[name] == [value]
    for finding in diagnosis.findings:
        assert finding.text in page.texts
        assert finding.advice in page.texts


@pytest.mark.parametrize("head", ["refit", "fold"])
def test_a_repair_shows_groups_before_and_after(random, head):
    torch = pytest.importorskip("torch")
    from isrlearn.networks import repair

    X, y, e = draw_rows(int(random.integers(2**32)), per_cell=40)
    network = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Linear(5, 2))
    batch = torch.tensor(X, dtype=torch.float32), torch.tensor(y), torch.tensor(e)
    found = repair(network, [batch], isr=ISRMean(1), head=head)
    rows = shown(found.report).by_head
    assert rows["average"] == ["", *(f"{s.average:.3f}" for s in scores_of(found.report))]
    assert rows["worst group"] == ["", *(f"{s.worst:.3f}" for s in scores_of(found.report))]
    for label, environment, size, before, after in found.report.rows():
        cells = rows[f"{label}, {environment}"]
        assert cells == [str(size), f"{before:.3f}", f"{after:.3f}"]
    whole = shown(found)
    for part in (found.report, found.subspace, found.report.diagnosis):
        assert part._repr_html_() in found._repr_html_()
    assert "Repair of Sequential" in whole.texts


def scores_of(report):
    return report.before, report.after


@pytest.mark.parametrize("extra", [0, 1, 30])
def test_a_long_table_is_cut_and_says_so(extra):
    n, m = MOST_ROWS + extra, MOST_COLUMNS + extra
    page = shown(table("Cells", range(m), [(f"r{i}", range(m)) for i in range(n)]))
    note = [row for row in page.rows if row[0].startswith("not shown")]
    assert len(page.rows) == 1 + MOST_ROWS + len(note)
    assert {len(row) for row in page.rows if row not in note} == {1 + MOST_COLUMNS}
    expected = f"not shown: {extra} more rows and {extra} more columns"
    assert note == ([[expected]] if extra else [])


@pytest.mark.parametrize("text", [HOSTILE, "<", "&amp;", "a & b", "'\""])
def test_any_text_comes_back_as_it_was(text):
    page = shown(table(text, [text], [(text, [text])], corner=text))
    assert page.texts[0] == text
    assert page.rows == [[text, text], [text, text]]


@pytest.mark.parametrize(
    "estimator",
    [ISR(random_state=0), ISRMean(), ISRCov(), ISRClassifier(ISRMean(1)), ISRRegressor()],
    ids=str,
)
def test_estimators_show_their_diagram_before_and_after_a_fit(random, estimator):
    X, y, e = draw_rows(int(random.integers(2**32)), per_cell=40)
    name = type(estimator).__name__
    assert name in estimator._repr_html_()
    fitted = estimator.fit(X, y, environments=e)
    assert name in fitted._repr_html_()
    assert name in make_pipeline(StandardScaler(), fitted)._repr_html_()


@pytest.mark.parametrize("predicts", [False, True])
@pytest.mark.parametrize("rank", [0, 2])
def test_the_spectrum_is_drawn_with_the_removed_ones_marked(random, predicts, rank):
    X, y, e = draw_rows(int(random.integers(2**32)), per_cell=40)
    estimator = ISRClassifier(ISRMean(rank)) if predicts else ISRCov(rank)
    estimator.fit(X, y, environments=e)
    axes = Figure().subplots()
    assert plots.plot_spectrum(axes, estimator) is axes
    removed, kept = axes.get_lines()[:2]
    assert np.array_equal(removed.get_ydata(), estimator.spectrum_[:rank])
    assert np.array_equal(kept.get_ydata(), estimator.spectrum_[rank:])
    assert np.array_equal(np.concatenate([removed.get_xdata(), kept.get_xdata()]), range(1, 6))
    assert removed.get_markerfacecolor() != kept.get_markerfacecolor()
    again = plots.plot_spectrum(Figure().subplots(), estimator.subspace_)
    assert np.array_equal(again.get_lines()[1].get_ydata(), kept.get_ydata())


def test_a_spectrum_needs_something_fitted():
    axes = Figure().subplots()
    with pytest.raises(NotFittedError):
        plots.plot_spectrum(axes, ISRMean())
    with pytest.raises(TypeError, match="StandardScaler"):
        plots.plot_spectrum(axes, StandardScaler())
    nothing = plots.plot_spectrum(axes, Subspace.nothing(3))
    assert nothing.get_legend_handles_labels()[1] == ["removed (0)", "kept (3)"]
