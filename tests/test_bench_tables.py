"""What is made of the rows of a store: trials, means, tables and figures."""

import re

import numpy as np
import pandas as pd
import pytest
from bench_support import EXACT, small_grid

from isrlearn.benchmark import run
from isrlearn.benchmark.complexity import complexity_grid, least_environments
from isrlearn.benchmark.figures import complexity_figure, save, unit_test_figure
from isrlearn.benchmark.methods import METHODS
from isrlearn.benchmark.summary import (
    agreement,
    choose_trials,
    frame_of,
    mean_errors,
    of_figure,
    of_jobs,
    published,
    wide_table,
)
from isrlearn.benchmark.tables import agreement_text, count_table, error_tables


def made_rows(validation, test, **setting):
    """Rows of one method: validation and test errors (seeds, trials)."""
    spec = {
        "example": "3",
        "method": "irmv1",
        "n_environments": 3,
        "d_c": 5,
        "d_s": 5,
        "rows": 10_000,
        "constants": "published",
        "rule": "training-domain",
        "trials": 20,
        "steps": 10_000,
        **setting,
    }
    return pd.DataFrame(
        {**spec, "seed": s, "trial": t, "error_validation": v, "error_test": test[s][t]}
        for s, row in enumerate(validation)
        for t, v in enumerate(row)
    )


def test_one_trial_is_chosen_for_all_seeds_by_its_mean_validation_error(random):
    validation, test = random.uniform(size=(2, 6, 4))
    rows = made_rows(validation, test)
    best = validation.mean(axis=0).argmin()
    chosen = choose_trials(rows.sample(frac=1, random_state=int(random.integers(2**31))))
    assert set(chosen["trial"]) == {best}
    assert sorted(chosen["error_test"]) == pytest.approx(sorted(test[:, best]))
    (row,) = mean_errors(rows).to_dict("records")
    assert row["error_test"] == pytest.approx(test[:, best].mean())
    assert row["se"] == pytest.approx(test[:, best].std(ddof=1) / np.sqrt(6))
    assert row["half"] == pytest.approx(2.570582 * row["se"], rel=1e-5)  # t, 5 degrees of freedom


def test_methods_of_the_same_class_name_stay_apart():
    rows = [
        made_rows([[0]], [[error]], method=name, trials=1, steps=0, n_environments=E, rule=rule)
        for name, rule, error in (
            ("a:Mine", "training-domain", 0.1),
            ("b:Mine", "training-domain", 0.5),
            ("a:Mine", "oracle", 0.3),
        )
        for E in (3, 4)
    ]
    wide = wide_table(mean_errors(pd.concat(rows)), "3")
    assert wide.to_numpy().tolist() == [[0.1, 0.1], [0.3, 0.3], [0.5, 0.5]]
    assert wide.index.tolist() == ["a:Mine", "a:Mine, oracle", "b:Mine"]
    figure = unit_test_figure(mean_errors(pd.concat(rows)))
    assert len(figure.axes[2].lines) == 3 + 4  # ours and the published


def test_duplicates_are_one_job(store):
    jobs = small_grid(["oracle", "oracle"], ["3", "3"], [2, 2], [0, 0])
    assert len(jobs) == 1
    run(jobs, store)
    assert len(of_jobs(frame_of(store), jobs + jobs)) == 1


def test_settings_are_never_mixed():
    a, b = made_rows([[0.1]], [[0.2]], steps=5), made_rows([[0.1]], [[0.4]])
    means = mean_errors(pd.concat([a, b]))
    assert sorted(means["label"]) == ["IRMv1", "IRMv1, 5 steps"]
    assert sorted(means["error_test"]) == [0.2, 0.4]
    assert len(of_figure(pd.concat([a, b, made_rows([[0]], [[0]], d_s=4)]))) == 2


def test_the_distance_to_the_published_mean_is_in_standard_errors():
    known = published().set_index(["example", "method", "n_environments"]).loc[("3", "irmv1", 3)]
    test = np.array([[0.4], [0.5], [0.6]])
    (row,) = agreement(mean_errors(made_rows(test, test))).to_dict("records")
    se = np.sqrt(0.1**2 / 3 + known["std"] ** 2 / 50)
    assert row["distance"] == pytest.approx(abs(0.5 - known["error_test"]) / se)
    text = agreement_text(mean_errors(made_rows(test, test)))
    assert "1 of 1 cells within 2 standard errors" in text
    assert agreement(mean_errors(made_rows(test, test, steps=9))).empty
    assert agreement(mean_errors(made_rows(test, test, method="oracle", steps=0, trials=1))).shape[
        0
    ]


def test_a_single_seed_has_no_distance():
    (row,) = agreement(mean_errors(made_rows([[0.4]], [[0.4]]))).to_dict("records")
    assert np.isnan(row["distance"])
    text = agreement_text(mean_errors(made_rows([[0.4]], [[0.4]])))
    assert "0 of 0 cells" in text and "1 cells have one seed" in text


def test_published_errors_are_there_for_every_cell():
    known = published()
    assert len(known) == 6 * 5 * 9
    cell = known.set_index(["example", "method", "n_environments"]).loc[("2", "erm-adam", 3)]
    assert cell["error_test"] == pytest.approx(0.42079, abs=1e-5)
    assert set(known["method"]) <= set(METHODS)


def test_the_figure_has_six_panels_and_one_legend(store, tmp_path):
    run(small_grid(EXACT, ("2", "3s'"), (2, 3), range(2)), store)
    means = mean_errors(frame_of(store))
    figure = unit_test_figure(means)
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == [f"Example {e}" for e in ("2", "2s", "3", "3s", "3'", "3s'")]
    assert all(ax.get_ylim() == (0, 0.6) for ax in figure.axes)
    assert {ax.get_xlabel() for ax in figure.axes} == {"number of environments"}
    assert figure.axes[0].get_ylabel() == "mean test error"
    assert len(figure.legends) == 1
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named[:3] == ["Oracle", "ISR-Mean", "ERM, whitened"]
    lines = {line.get_label(): line for line in figure.axes[5].lines}
    errors_drawn = means[(means["example"] == "3s'") & (means["method"] == "isr-mean")]
    np.testing.assert_allclose(lines["ISR-Mean"].get_ydata(), errors_drawn["error_test"])
    for suffix in ("png", "svg", "pdf"):
        save(figure, tmp_path / f"figure.{suffix}")
        assert (tmp_path / f"figure.{suffix}").stat().st_size > 1000
    wide = wide_table(means, "2")
    assert wide.columns.tolist() == [2, 3]
    assert "Example 3s': mean test error, 2 seeds" in error_tables(means)
    assert error_tables(means, markdown=True).count("|") > 20
    assert "Oracle" in count_table(frame_of(store))


def test_a_column_of_one_digit_has_a_rule_that_markdown_reads():
    text = agreement_text(mean_errors(made_rows([[0.4]] * 3, [[0.4]] * 3)), markdown=True)
    marks = text.splitlines()[1].split("|")[1:-1]
    assert all(re.fullmatch(r" -+:? ", mark) for mark in marks)


def test_a_long_legend_stays_inside_and_variants_look_different():
    rules = ("training-domain", "leave-one-environment-out", "oracle")
    rows = pd.concat(
        made_rows([[0.4]] * 2, [[0.4]] * 2, method=method, rule=rule, n_environments=E)
        for method in ("irmv1", "iga", "and-mask", "erm-adam")
        for rule in rules
        for E in (3, 4)
    )
    figure = unit_test_figure(mean_errors(rows))
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width
    looks = {
        (line.get_color(), line.get_linestyle(), line.get_label())
        for line in figure.axes[2].lines
        if line.get_label().startswith("IRMv1") and not line.get_label().endswith("published")
    }
    assert len({(color, dashes) for color, dashes, _ in looks}) == len(looks) == 3


def test_the_oracle_alone_has_a_figure_too():
    rows = [
        made_rows(
            [[0]], [[0.1]], method="oracle", trials=1, steps=0, n_environments=E, example="3s"
        )
        for E in (2, 3)
    ]
    figure = complexity_figure(least_environments(mean_errors(pd.concat(rows))))
    assert figure.axes and all(axes.get_xlabel() or axes.get_title() for axes in figure.axes)


def test_the_least_number_of_environments_counts_from_the_last_failure():
    cells = {"isr": [0.02, 0.3, 0.015, 0.02], "isr-cov": [0.3, 0.3, 0.3, 0.3], "oracle": [0.01] * 4}
    rows = [
        made_rows([[0]], [[value]], method=m, trials=1, steps=0, n_environments=E, example="3s")
        for m, values in cells.items()
        for E, value in zip((2, 3, 4, 5), values, strict=True)
    ]
    least = least_environments(mean_errors(pd.concat(rows))).set_index("method")["needed"]
    assert least["isr"] == 4 and least["oracle"] == 2 and np.isnan(least["isr-cov"])


def test_isr_mean_needs_one_environment_more_than_spurious_dimensions(store):
    jobs = complexity_grid(("isr-mean",), (1, 2, 3), (2, 3, 4, 5), 3)
    run(jobs, store)
    least = least_environments(mean_errors(of_jobs(frame_of(store), jobs)))
    mean = least[least["method"] == "isr-mean"]
    assert (mean["needed"] == mean["d_s"] + 1).all()
    figure = complexity_figure(least)
    assert len(figure.axes) == 2 and len(figure.legends) == 1
