"""The store of the benchmark: jobs written once, wholly, and files that are none."""

import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest
from bench_support import result_of

from isrlearn.benchmark import Job, Problem, Store
from isrlearn.benchmark.store import COLUMNS, SPEC_COLUMNS
from isrlearn.exceptions import StoreError


def test_a_job_is_written_once_until_it_is_forgotten(store):
    job = Job(Problem("3", 2, 0), "irmv1", trials=3, steps=1)
    assert store.add([result_of(job, 0.25, 3)]) == 1
    assert store.add([result_of(job, 0.5, 3)]) == 0
    assert [row["error_test"] for row in store.records()] == [0.25] * 3
    assert store.finished() == {job.key}
    assert store.has(job.key) and not store.has("other")
    store.forget(["other"])
    assert store.has(job.key)
    store.forget([job.key])
    assert store.records() == []


def test_what_is_replaced_is_there_until_the_new_is_written(store):
    jobs = [Job(Problem("3", 2, seed), "isr") for seed in (0, 1)]
    store.add([result_of(job, 0.25) for job in jobs])

    def stopped():
        yield result_of(jobs[0], 0.5)
        raise KeyboardInterrupt

    keys = [job.key for job in jobs]
    with pytest.raises(KeyboardInterrupt):
        store.add(stopped(), instead_of=keys)
    assert [row["error_test"] for row in store.records()] == [0.25, 0.25]
    assert store.add([result_of(jobs[0], 0.5)], instead_of=keys) == 1
    assert [row["error_test"] for row in store.records()] == [0.5]


def test_a_store_whose_last_byte_is_missing_is_refused(store):
    store.path.write_bytes(store.path.read_bytes()[:-1])  # a zero, which SQLite would add
    with pytest.raises(StoreError, match="its end is missing"):
        store.check()


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
    for length in [len(content) - 1, *random.integers(1, len(content), 12)]:
        path.write_bytes(content[:length])
        refused(path, "cannot be used as a store")


def test_the_journal_of_a_process_that_was_killed_is_played_back(store):
    store.add([result_of(Job(Problem("3", 2, 0), "isr"))])
    before = store.records()
    code = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_size = 1')\n"  # so that pages get to the file before the end
        "c.execute('BEGIN')\n"
        "c.execute('DELETE FROM results')\n"
        "rows = [(str(i), 0, 'x' * 500) for i in range(500)]\n"
        "c.executemany('INSERT INTO results (job, trial, method) VALUES (?, ?, ?)', rows)\n"
        "os._exit(1)"
    )
    whole = store.path.read_bytes()
    subprocess.run([sys.executable, "-c", code, str(store.path)], check=False)
    journal = store.path.with_name(f"{store.path.name}-journal")
    assert journal.exists() and store.path.read_bytes() != whole
    assert store.check().records() == before
    assert not journal.exists()
    assert store.path.read_bytes() == whole


def test_what_cannot_be_a_store_is_said(tmp_path):
    with pytest.raises(StoreError, match="is a folder"):
        Store(tmp_path).create()
    with pytest.raises(StoreError, match="cannot be made"):
        Store("/proc/store.sqlite").create()
    store = Store(str(tmp_path / "gone ?.sqlite")).create()
    store.path.unlink()
    with pytest.raises(StoreError, match="cannot be used now"):
        store.records()
    assert not store.path.exists()


def test_checking_a_store_does_not_drop_its_lock(store):
    with store._transaction() as connection:
        connection.execute("DELETE FROM results")
        store.check()
        code = (
            "import sqlite3, sys\n"
            "c = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
            "c.execute('BEGIN IMMEDIATE')"
        )
        other = subprocess.run(
            [sys.executable, "-c", code, str(store.path)], capture_output=True, check=False
        )
        assert b"database is locked" in other.stderr


def test_a_missing_store_is_made_by_create_only(tmp_path):
    path = tmp_path / "new" / "store.sqlite"
    with pytest.raises(StoreError, match="no store"):
        Store(path).check()
    assert not path.exists()
    assert Store(path).create().records() == []
    assert [p.name for p in path.parent.iterdir()] == [path.name]
