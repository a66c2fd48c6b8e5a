"""Sums by the workers of a Dask cluster: the same as here, whoever dies."""

import os
import signal
import threading
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from conftest import draw_rows

from isrlearn import ISR, ISRClassifier, ISRCov, ISRMean

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from isrlearn.distributed import DaskRows, cluster  # noqa: E402

pytestmark = [  # of Dask's own sockets, when workers come and go
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with cluster(n_workers=2) as found:
            yield found


@pytest.fixture
def rows(random):
    return draw_rows(int(random.integers(2**31)), per_cell=300, n_features=6)


def blocks(X, y, e, size=450):
    return (
        da.from_array(X, chunks=(size, X.shape[1])),
        da.from_array(y, chunks=size),
        da.from_array(e, chunks=size),
    )


def relative(one, other):
    return np.abs(one - other).max() / np.abs(other).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("persisted", [True, False])
def test_moments_and_head_are_those_of_one_process(client, rows, persisted, dtype):
    X, y, e = rows
    X = X.astype(dtype)
    arrays = blocks(X, y, e)
    if persisted:
        arrays = client.persist(list(arrays))
    found = DaskRows.from_arrays(arrays[0], arrays[1], environments=arrays[2], client=client)
    for isr in (ISRMean(1), ISRCov(1)):
        here, there = isr.fit(X, y, environments=e).moments_, isr.fit(found).moments_
        assert relative(there.means, here.means) < 1e-10
        if here.scatters is not None:
            assert relative(there.scatters, here.scatters) < 1e-10
        one = ISRClassifier(isr).fit(X, y, environments=e)
        many = ISRClassifier(isr).fit(found)
        assert relative(many.coef_, one.coef_) < 1e-4
        assert (many.predict(X) == one.predict(X)).mean() > 0.99


def test_the_rank_is_found_on_a_cluster(client, rows):
    X, y, e = rows
    found = DaskRows.from_arrays(*blocks(X, y, e)[:2], environments=e, client=client)
    isr = ISR(random_state=0).fit(found)
    assert isr.rank_choice_ is not None
    assert (
        isr.n_spurious_
        == ISR(rank_test="moments", random_state=0).fit(X, y, environments=e).n_spurious_
    )


def test_columns_in_memory_or_cut_in_another_way_and_weights(client, rows, random):
    X, y, e = rows
    weights = random.uniform(0.5, 2, len(X))
    x, labels, _ = blocks(X, y, e)
    found = DaskRows.from_arrays(
        x.rechunk((450, 2)),
        labels.rechunk(200),
        environments=e.astype(str),
        sample_weight=weights,
        client=client,
    )
    here = ISRCov(1).fit(X, y, environments=e.astype(str), sample_weight=weights)
    there = ISRCov(1).fit(found)
    assert found.n_rows == len(X)
    assert relative(there.moments_.scatters, here.moments_.scatters) < 1e-10
    np.testing.assert_array_equal(there.environments_, here.environments_)


def test_a_dataframe(client, rows):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    X, y, e = rows
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(6)]).assign(kind=y, site=e.astype(str))
    found = DaskRows.from_dataframe(
        dd.from_pandas(frame, npartitions=4), label="kind", environment="site", client=client
    )
    here = ISRMean(1).fit(frame.iloc[:, :6], y, environments=e.astype(str))
    there = ISRMean(1).fit(found)
    assert relative(there.moments_.means, here.moments_.means) < 1e-10
    assert there.feature_names_in_.tolist() == [f"f{j}" for j in range(6)]
    with pytest.raises(ValueError, match="no column 'hospital'"):
        DaskRows.from_dataframe(
            dd.from_pandas(frame, npartitions=2), label="kind", environment="hospital"
        )


def test_files_are_read_by_the_workers(client, rows, tmp_path, monkeypatch):
    X, y, e = rows
    half = len(X) // 2
    for number, own in enumerate((slice(half), slice(half, None))):
        np.savez(tmp_path / f"{number}.npz", features=X[own], labels=y[own], environments=e[own])
    paths = sorted(tmp_path.glob("*.npz"))
    found = DaskRows.from_files(paths, client=client)
    here, there = ISRCov(1).fit(X, y, environments=e), ISRCov(1).fit(found)
    assert relative(there.moments_.scatters, here.moments_.scatters) < 1e-10
    assert found.n_rows == len(X)
    with pytest.raises(ValueError, match=r"nowhere.npz does not exist"):
        DaskRows.from_files(tmp_path / "nowhere.npz", client=client)


def slowly(folder, number, block):
    """Return a block, late enough to be killed before; each call leaves a trace."""
    (Path(folder) / f"{number}-{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(0.2)
    return block


def test_a_worker_that_is_killed_in_mid_fit_changes_nothing(rows, tmp_path):
    X, y, e = rows
    parts = [slice(i, i + 300) for i in range(0, len(X), 300)]
    with warnings.catch_warnings(), cluster(n_workers=2) as client:
        warnings.simplefilter("ignore")  # about the worker that is killed
        lazy = [
            da.from_delayed(
                dask.delayed(partial(slowly, str(tmp_path), i))(X[own]), X[own].shape, X.dtype
            )
            for i, own in enumerate(parts)
        ]
        found = DaskRows.from_arrays(da.concatenate(lazy), y, environments=e, client=client)
        undisturbed = ISRClassifier(ISRMean(1)).fit(found)
        for trace in tmp_path.iterdir():
            trace.unlink()
        victims = []

        def kill():
            while not list(tmp_path.iterdir()):
                time.sleep(0.01)
            pids = client.run(os.getpid)
            victims.append(next(iter(pids.values())))
            os.kill(victims[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        disturbed = ISRClassifier(ISRMean(1)).fit(found)
        killer.join()
        assert victims[0] not in client.run(os.getpid).values()
    np.testing.assert_array_equal(disturbed.coef_, undisturbed.coef_)
    moments = disturbed.isr_.moments_, undisturbed.isr_.moments_
    np.testing.assert_array_equal(moments[0].means, moments[1].means)
    np.testing.assert_array_equal(moments[0].counts, moments[1].counts)


def test_labels_that_a_killed_worker_held_are_encoded_again(rows, tmp_path):
    X, y, e = rows
    parts = [slice(i, i + 300) for i in range(0, len(X), 300)]
    with warnings.catch_warnings(), cluster(n_workers=2) as client:
        warnings.simplefilter("ignore")  # about the worker that is killed
        lazy = [
            da.from_delayed(
                dask.delayed(partial(slowly, str(tmp_path), i))(X[own]), X[own].shape, X.dtype
            )
            for i, own in enumerate(parts)
        ]
        x = client.persist(da.concatenate(lazy))
        distributed.wait(x)
        found = DaskRows.from_arrays(x, y, environments=e, client=client)
        undisturbed = ISRClassifier(ISRMean(1)).fit(found)
        n_read = len(list(tmp_path.iterdir()))
        assert n_read == len(parts)  # blocks are read once
        # One that has what no other has: the scheduler may have given one of them nothing.
        only = next(held[0] for held in client.who_has(x).values() if len(held) == 1)
        os.kill(client.run(os.getpid)[only], signal.SIGKILL)
        disturbed = ISRClassifier(ISRMean(1)).fit(found)
        assert len(list(tmp_path.iterdir())) > n_read
    np.testing.assert_array_equal(disturbed.coef_, undisturbed.coef_)


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_persisted_blocks_with_rows_of_no_weight_and_labels_of_their_own(
    client, rows, random, dtype
):
    X, y, e = rows
    X = (20 * X).astype(dtype)
    names = np.array(["finch", "a very long name"])[y]
    order = np.argsort(y, kind="stable")  # blocks that have one class only
    X, names, e = X[order], names[order], e[order]
    weights = random.uniform(0.5, 2, len(X))
    weights[random.random(len(X)) < 0.2] = 0
    weights[:450] = np.where(weights[:450] > 0, weights[:450], 1)  # a block without such rows
    columns = (*blocks(X, names, e), da.from_array(weights, chunks=450))
    x, labels, sites, given = client.persist(list(columns))
    found = DaskRows.from_arrays(x, labels, environments=sites, sample_weight=given, client=client)
    for model in (ISRCov(1), ISRClassifier(ISRMean(1))):
        here = model.fit(X, names, environments=e, sample_weight=weights)
        expected = getattr(here, "isr_", here).moments_, getattr(here, "coef_", np.ones(1))
        there = model.fit(found)
        moments, coef = getattr(there, "isr_", there).moments_, getattr(there, "coef_", np.ones(1))
        np.testing.assert_array_equal(moments.counts, expected[0].counts)
        assert relative(moments.means, expected[0].means) < 1e-10
        assert relative(coef, expected[1]) < 1e-4
        np.testing.assert_array_equal(moments.classes, ["a very long name", "finch"])


def test_blocks_may_be_empty(client, rows):
    X, y, e = rows
    lengths = (450, 0, len(X) - 450)
    lazy = da.from_array(X, chunks=(450, 6)).rechunk(((*lengths,), (6,)))
    for x in (lazy, client.persist(lazy)):
        found = DaskRows.from_arrays(x, y, environments=e, client=client)
        assert relative(ISRMean(1).fit(found).moments_.means, moments_here(X, y, e)) < 1e-10
    nothing = DaskRows.from_arrays(lazy[:0], y[:0], environments=e[:0], client=client)
    with pytest.raises(ValueError, match="there are no rows"):
        ISRMean(1).fit(nothing)


def moments_here(X, y, e):
    return ISRMean(1).fit(X, y, environments=e).moments_.means


def test_what_is_wrong_on_a_worker_is_said_here(client, rows):
    X, y, e = rows
    X = X.copy()
    X[700, 3] = np.nan
    x, labels, _ = blocks(X, y, e)
    with pytest.raises(ValueError, match=r"NaN in column\(s\) \[3\]"):
        ISRMean(1).fit(DaskRows.from_arrays(x, labels, environments=e, client=client))
    with pytest.raises(ValueError, match="y has 3 values but X has"):
        DaskRows.from_arrays(x, y[:3], client=client)
    with pytest.raises(ValueError, match="expected \\(rows, features\\)"):
        DaskRows.from_arrays(labels, y, client=client)


def test_a_scheduler_that_does_not_answer(monkeypatch):
    monkeypatch.setattr("isrlearn.distributed._cluster.PATIENCE", "1s")
    with pytest.raises(ValueError, match="no Dask scheduler answers"), cluster("tcp://127.0.0.1:9"):
        pass


def test_the_benchmark_runs_on_a_cluster(client, tmp_path):
    from isrlearn.benchmark import Store, grid, run

    jobs = grid(["oracle", "erm-whitened"], ["2s"], [2], range(2), rows=100)
    here, there = (Store(tmp_path / name).create() for name in ("here.sqlite", "there.sqlite"))
    assert run(jobs, here) == run(jobs, there, client=client) == len(jobs)
    assert here.finished() == there.finished()
