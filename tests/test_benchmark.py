"""The benchmark: jobs, their store, the runner, and what is made of the rows."""

import json
import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from isrlearn import ISRClassifier, ISRMean
from isrlearn.benchmark import PROFILES, Job, Problem, Store, grid, pending, run
from isrlearn.benchmark.complexity import complexity_grid, least_environments
from isrlearn.benchmark.execution import JobResult, TrialResult, run_unit
from isrlearn.benchmark.figures import complexity_figure, save, unit_test_figure
from isrlearn.benchmark.methods import METHODS, method_named
from isrlearn.benchmark.runner import units
from isrlearn.benchmark.store import COLUMNS, SPEC_COLUMNS
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
from isrlearn.exceptions import JobError, StoreError

EXACT = ("oracle", "isr-mean", "erm-whitened")


def small_grid(methods=EXACT, examples=("2s", "3"), n_environments=(2, 3), seeds=range(2), **how):
    return grid(methods, examples, n_environments, seeds, rows=200, **how)


def errors(store):
    """Everything in a store that must not depend on how it was filled."""
    return frame_of(store).drop(columns=["seconds"])


def result_of(job, error_test=0.25, n_trials=1):
    trials = [TrialResult(t, {"t": t}, 0.1, 0.2, error_test, 0.3) for t in range(n_trials)]
    return JobResult(job, tuple(trials), 1.5)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store.sqlite").create()


# jobs


def test_the_profiles_have_the_size_of_the_papers_figure():
    sizes = {}
    for name, profile in PROFILES.items():
        jobs = grid(
            profile.methods, profile.examples, profile.n_environments, range(profile.n_seeds)
        )
        assert len({job.key for job in jobs}) == len(jobs)
        sizes[name] = len(jobs)
    assert sizes["exact"] == 6 * 9 * 50 * 6
    assert sizes["paper"] == 6 * 9 * 50 * 13
    trained = grid(["irmv1"], ["2"], [2], [0, 1])
    assert {(job.trials, job.steps) for job in trained} == {(20, 10_000)}


def test_a_key_depends_on_every_field_and_on_nothing_else():
    job = Job(Problem("3s", 4, 7), "irmv1", "oracle", 20, 10_000)
    again = Job(Problem(seed=7, n_environments=4, example="3s"), "irmv1", "oracle", 20, 10_000)
    # Stores that exist were filled under these keys: another hash would compute all anew.
    assert job.key == again.key == "835d10fe03f1ad493eb9e612539d5325"
    changed = [replace(job, **{f: v}) for f, v in (("method", "iga"), ("rule", "x"))]
    changed += [replace(job, trials=19), replace(job, steps=9)]
    for name, value in (
        ("example", "3"),
        ("n_environments", 5),
        ("seed", 8),
        ("d_c", 4),
        ("d_s", 4),
        ("rows", 9),
        ("constants", "paper"),
    ):
        changed.append(replace(job, problem=replace(job.problem, **{name: value})))
    assert len({job.key, *(other.key for other in changed)}) == 1 + len(changed)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"methods": ["nothing"]}, "nothing.*one of oracle"),
        ({"methods": ["no_such_module:X"]}, "no_such_module"),
        ({"methods": ["math:pi"]}, "class with fit"),
        ({"examples": ["1"]}, "'1'.*one of 2, 2s"),
        ({"n_environments": [1]}, "at least 2"),
        ({"n_environments": [2], "rule": "leave-one-environment-out"}, "at least 3"),
        ({"rule": "test"}, "'test'.*one of training-domain"),
    ],
)
def test_a_bad_grid_says_what_would_be_right(arguments, words):
    with pytest.raises(ValueError, match=words):
        small_grid(**arguments)


def test_exact_methods_share_their_rows_and_others_run_alone():
    jobs = small_grid((*EXACT, "irmv1", "iga"), trials=2, steps=3)
    work = units(jobs)
    assert sorted(job.key for unit in work for job in unit) == sorted(job.key for job in jobs)
    for unit in work:
        assert len({job.problem for job in unit}) == 1
        assert [job.method for job in unit] in ([*EXACT], ["irmv1"], ["iga"])
    seeds = [unit[0].problem.seed for unit in work]
    assert seeds == sorted(seeds)


# what a job computes


def test_errors_are_those_of_the_estimator(random):
    seed = int(random.integers(2**31))
    problem = Problem("3s", 4, seed, rows=150)
    (result,) = run_unit([Job(problem, "isr-mean")])
    source = problem.unit_test()
    X, y, environments = source.sample(150)
    model = ISRClassifier(ISRMean(n_spurious=3)).fit(X, y, environments=environments)
    (trial,) = result.trials
    for split, found in (
        ("train", trial.error_train),
        ("validation", trial.error_validation),
        ("test", trial.error_test),
    ):
        rows = source.sample(150, split)
        assert found == pytest.approx((model.predict(rows.X) != rows.y).mean(), abs=1e-12)
    test = source.sample(150, "test")
    wrong = model.predict(test.X) != test.y
    worst = max(wrong[test.environments == e].mean() for e in range(4))
    assert trial.error_test_worst == pytest.approx(worst, abs=1e-12)


def test_the_rules_judge_by_what_they_say(random):
    problem = Problem("3s", 3, int(random.integers(2**31)), rows=120)
    jobs = [
        Job(problem, "erm-whitened", rule)
        for rule in ("training-domain", "oracle", "leave-one-environment-out")
    ]
    judged = [result.trials[0].error_validation for result in run_unit(jobs)]
    source = problem.unit_test()
    train = source.sample(120)
    make = METHODS["erm-whitened"].estimator
    model = make(source, 3).fit(train.X, train.y)
    for shuffled, found in zip((False, True), judged[:2], strict=True):
        rows = source.sample(120, "validation", shuffled=shuffled)
        assert found == pytest.approx((model.predict(rows.X) != rows.y).mean())
    left_out = []
    for e in range(3):
        out = train.environments == e
        other = make(source, 2).fit(train.X[~out], train.y[~out])
        left_out.append((other.predict(train.X[out]) != train.y[out]).mean())
    assert judged[2] == pytest.approx(np.mean(left_out))


@pytest.mark.parametrize("method", [name for name in METHODS if METHODS[name].recipe])
def test_methods_that_descend_keep_all_trials(method):
    (job,) = small_grid([method], ["3s"], [3], [0], trials=4, steps=30)
    (result,) = run_unit([job])
    assert [trial.trial for trial in result.trials] == [0, 1, 2, 3]
    assert all(0 <= trial.error_test <= trial.error_test_worst <= 1 for trial in result.trials)
    assert len({json.dumps(trial.hyperparameters) for trial in result.trials}) == 4
    assert job.rule == ("oracle" if method == "oracle-adam" else "training-domain")


class Constant(ClassifierMixin, BaseEstimator):
    """Takes no environments; predicts what it is told."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


class TwoColumns(Constant):
    def predict(self, X):
        return np.zeros((len(X), 2))


class NeedsManyEnvironments(Constant):
    def fit(self, X, y, *, environments):
        if len(set(environments)) < 3:
            raise ValueError("too few")
        return self


def test_an_estimator_of_the_users_joins_by_its_name(store):
    name = f"{__name__}:Constant"
    run(small_grid([name], ["3"], [3], range(2)), store)
    rows = frame_of(store)
    assert rows["method"].tolist() == [name] * 2
    assert rows["error_test"].between(0.4, 0.6).all()
    assert method_named(name).label == "Constant"
    assert mean_errors(rows)["label"].tolist() == ["Constant"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("TwoColumns", r"TwoColumns failed on Example 3 with 2 .* shape \(200, 2\)|\(400, 2\)"),
        ("NeedsManyEnvironments", r"seed 0: ValueError: too few .*test_benchmark.py, line"),
    ],
)
def test_a_failing_method_is_named_with_place_and_reason(store, name, words):
    with pytest.raises(JobError, match=words):
        run(small_grid([f"{__name__}:{name}"], ["3"], [2], [0]), store)


# the store


def test_a_job_is_written_once_unless_it_is_to_be_replaced(store):
    job = Job(Problem("3", 2, 0), "irmv1", trials=3, steps=1)
    assert store.add([result_of(job, 0.25, 3)]) == 1
    assert store.add([result_of(job, 0.5, 3)]) == 0
    assert [row["error_test"] for row in store.records()] == [0.25] * 3
    assert store.add([result_of(job, 0.5, 3)], replace=True) == 1
    assert [row["error_test"] for row in store.records()] == [0.5] * 3
    assert store.finished() == {job.key}
    assert store.has(job.key) and not store.has("other")


def test_rows_carry_what_the_job_was(store):
    job = Job(Problem("3s'", 5, 9, 3, 4, 77, "paper"), "isr", "oracle")
    store.add([result_of(job)])
    (row,) = store.records()
    assert {name: row[name] for name in SPEC_COLUMNS} == job.as_dict()
    assert tuple(row) == COLUMNS and row["seconds"] == 1.5
    for name in ("example", "method", "n_environments", "seed", "trial", "rule", "error_train"):
        assert name in row


def test_a_failed_write_leaves_nothing_behind(store):
    good = result_of(Job(Problem("3", 2, 0), "isr"))
    bad = result_of(Job(Problem("3", 2, 1), "isr"))
    bad = replace(bad, trials=(bad.trials[0], bad.trials[0]))  # the same trial twice
    with pytest.raises(StoreError):
        store.add([good, bad])
    assert store.records() == []


def refused(path, words):
    before = path.read_bytes()
    for action in (Store(path).create, Store(path).check):
        with pytest.raises(StoreError, match=words):
            action()
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_foreign_file_is_refused_and_left_alone(tmp_path, random):
    path = tmp_path / "results.sqlite"
    for content in (
        b"",
        b"example,method\n",
        random.bytes(5000),
        b"SQLite format 3\x00" + b"x" * 99,
    ):
        path.write_bytes(content)
        refused(path, "cannot be used as a store")


def test_a_database_of_another_program_or_protocol_is_refused(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE results (job TEXT)")
    connection.close()
    refused(path, "another program")
    path.unlink()
    Store(path).create()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    refused(path, "protocol 99")


def test_a_truncated_store_is_refused_wherever_it_is_cut(tmp_path, random):
    whole = Store(tmp_path / "whole" / "store.sqlite").create()
    whole.add(result_of(Job(Problem("3", 2, seed), "isr"), n_trials=20) for seed in range(30))
    content = whole.path.read_bytes()
    (tmp_path / "cut").mkdir()
    path = tmp_path / "cut" / "store.sqlite"
    for length in random.integers(1, len(content), 12):
        path.write_bytes(content[:length])
        refused(path, "cannot be used as a store")


def test_a_missing_store_is_made_by_create_only(tmp_path):
    path = tmp_path / "new" / "store.sqlite"
    with pytest.raises(StoreError, match="no store"):
        Store(path).check()
    assert not path.exists()
    assert Store(path).create().records() == []
    assert [p.name for p in path.parent.iterdir()] == [path.name]


# the runner


def test_one_worker_and_two_give_the_same_bits(tmp_path):
    jobs = small_grid((*EXACT, "isr", "irmv1"), trials=3, steps=20)
    filled = []
    for n_jobs in (1, 2):
        store = Store(tmp_path / f"{n_jobs}.sqlite").create()
        assert run(jobs, store, n_jobs=n_jobs) == len(jobs)
        filled.append(errors(store))
    pd.testing.assert_frame_equal(*filled, check_exact=True)


def test_a_store_grows_and_what_is_done_is_not_done_again(store):
    first = small_grid(seeds=range(1))
    run(first, store)
    before = frame_of(store)
    more = small_grid(seeds=range(2), n_environments=(2, 3, 4))
    done = []
    run(more, store, on_done=lambda results: done.extend(r.job.key for r in results))
    assert sorted(done) == sorted({j.key for j in more} - {j.key for j in first})
    assert pending(more, store) == []
    rows = frame_of(store)
    kept = rows.merge(before[list(SPEC_COLUMNS)], on=list(SPEC_COLUMNS))
    pd.testing.assert_frame_equal(kept, before, check_exact=True)


def test_any_part_of_a_grid_agrees_with_the_whole(tmp_path, random):
    whole, part = (Store(tmp_path / f"{name}.sqlite").create() for name in "ab")
    jobs = small_grid((*EXACT, "isr"))
    run(jobs, whole)
    chosen = [jobs[i] for i in random.permutation(len(jobs))[:5]]
    run(chosen, part)
    found = of_jobs(errors(whole), chosen)
    pd.testing.assert_frame_equal(errors(part), found[errors(part).columns], check_exact=True)


def test_redo_replaces(store):
    jobs = small_grid(["erm-whitened"], ["3"], [2], [0])
    store.add([result_of(jobs[0], 0.99)])
    assert run(jobs, store) == 0
    assert frame_of(store)["error_test"].tolist() == [0.99]
    assert run(jobs, store, redo=True) == 1
    assert frame_of(store)["error_test"].tolist() != [0.99]


# tables and figures


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
