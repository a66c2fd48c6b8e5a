"""The benchmark: jobs, what they compute, and the runner."""

import json
import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from bench_support import EXACT, errors, result_of, small_grid
from sklearn.base import BaseEstimator, ClassifierMixin

from isrlearn import ISRClassifier, ISRMean
from isrlearn.benchmark import PROFILES, Job, Problem, Store, grid, pending, run
from isrlearn.benchmark.execution import run_unit
from isrlearn.benchmark.methods import METHODS, method_named
from isrlearn.benchmark.runner import units
from isrlearn.benchmark.store import SPEC_COLUMNS
from isrlearn.benchmark.summary import (
    frame_of,
    mean_errors,
    of_jobs,
)
from isrlearn.exceptions import JobError, StoreError


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
    assert job.key == again.key == "5fd88ad6a11a12791ef24d993af38ea1"
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
        ({"methods": ["irmv1"], "trials": -1}, "trials=-1 must be a whole number of at least 1"),
        ({"d_s": [3, 0]}, "d_s=0 must be a whole number of at least 1"),
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


class Strings(Constant):
    def predict(self, X):
        return np.array(["0"] * len(X))


class Exit(Constant):
    def fit(self, X, y):
        raise SystemExit(3)


class TakesAnything(Constant):
    def fit(self, X, y, **given):
        self.given = given
        return self

    def predict(self, X):
        return np.full(len(X), "environments" in self.given)


class Clumsy(Constant):
    """Changes in place what it gets, and returns nothing."""

    def fit(self, X, y):
        X[:], y[:] = 0, 1 - y

    def predict(self, X):
        X[:] = 0
        return super().predict(X)


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
    assert mean_errors(rows)["label"].tolist() == [name] == [method_named(name).label]


def test_a_method_cannot_change_the_rows_of_others():
    jobs = small_grid([f"{__name__}:Clumsy", f"{__name__}:Constant", "oracle"], ["3"], [2], [0])
    together = [result.trials for result in run_unit(jobs)]
    assert together[0] == together[1]
    assert together == [run_unit([job])[0].trials for job in jobs]


def test_environments_go_to_every_fit_that_takes_them():
    (job,) = small_grid([f"{__name__}:TakesAnything"], ["3"], [2], [0])
    (result,) = run_unit([job])
    y = job.problem.unit_test().sample(200, "test").y
    assert result.trials[0].error_test == pytest.approx((y == 0).mean())


def test_what_a_failing_method_shares_a_problem_with_is_saved(store):
    jobs = small_grid([*EXACT, f"{__name__}:Strings"], ["3"], [2], [0])
    with pytest.raises(JobError):
        run(jobs, store)
    assert set(frame_of(store)["method"]) == set(EXACT)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("TwoColumns", r"TwoColumns failed on Example 3 with 2 .*shape \(400, 2\) for 400 rows"),
        ("Strings", "Strings failed.*must return the labels of y, 0 and 1"),
        ("Exit", "Exit failed.*SystemExit"),
        ("NeedsManyEnvironments", r"seed 0: ValueError: too few .*test_benchmark.py, line"),
    ],
)
def test_a_failing_method_is_named_with_place_and_reason(store, name, words):
    with pytest.raises(JobError, match=words):
        run(small_grid([f"{__name__}:{name}"], ["3"], [2], [0]), store)


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


def test_redo_drops_nothing_before_there_is_something_new(store):
    jobs = small_grid([f"{__name__}:Strings"], ["3"], [2], range(3))
    store.add([result_of(job, 0.99) for job in jobs])
    with pytest.raises(JobError):
        run(jobs, store, redo=True)
    assert frame_of(store)["error_test"].tolist() == [0.99] * 3


def test_redo_loses_nothing_if_the_new_cannot_be_written(store, monkeypatch):
    jobs = small_grid(["erm-whitened"], ["3"], [2], range(3))
    store.add([result_of(job, 0.99) for job in jobs])

    def full(*values):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("isrlearn.benchmark.store._insert", full)
    with pytest.raises(StoreError, match="What it has is safe"):
        run(jobs, store, redo=True)
    assert frame_of(store)["error_test"].tolist() == [0.99] * 3


def test_a_grid_takes_the_integers_of_numpy():
    by_numpy = small_grid(["irmv1"], ["3"], np.arange(2, 4), np.arange(2), d_s=iter(np.array([2])))
    plain = small_grid(["irmv1"], ["3"], [2, 3], [0, 1], d_s=[2])
    assert [job.key for job in by_numpy] == [job.key for job in plain]
