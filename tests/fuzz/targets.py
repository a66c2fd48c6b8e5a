"""Every entry that takes a file, or arrays, that are not ours: one function of bytes each.

The documented exceptions of an entry are those of its line in `ENTRIES`, and no others.
"""

from fuzz import fitting, folders, rows, written
from fuzz.guard import Entry
from isrlearn.exceptions import (
    DataError,
    FeatureFileError,
    ModelFileError,
    StoreError,
    TrainingError,
)

ARRAYS = (DataError,)
FOLDERS = (DataError, FeatureFileError)
ENTRIES = {
    entry.name: entry
    for entry in (
        Entry("read npz", rows.read(".npz", rows.npz_bytes), ARRAYS),
        Entry("read safetensors", rows.read(".safetensors", rows.safetensors_file), ARRAYS),
        Entry("read csv", rows.read(".csv", rows.csv_bytes, **rows.TABLE), ARRAYS),
        Entry("read tsv", rows.read(".tsv", rows.csv_bytes, **rows.TABLE), ARRAYS),
        Entry("read parquet", rows.read(".parquet", rows.parquet_bytes, **rows.TABLE), ARRAYS),
        Entry("read feature folder", folders.read_feature_data, FOLDERS),
        Entry("chunks of npz", rows.read_in_chunks(".npz", rows.npz_bytes), ARRAYS),
        Entry(
            "chunks of safetensors",
            rows.read_in_chunks(".safetensors", rows.safetensors_file),
            ARRAYS,
        ),
        Entry(
            "chunks of parquet",
            rows.read_in_chunks(".parquet", rows.parquet_bytes, **rows.TABLE),
            ARRAYS,
        ),
        Entry("chunks of feature folder", folders.read_feature_chunks, FOLDERS),
        Entry("FeatureFile", folders.read_feature_folder, (FeatureFileError,)),
        Entry("LinearModel", written.model_file, (ModelFileError,)),
        Entry("saved subspace", written.subspace_file, (ModelFileError,)),
        Entry("saved estimator", written.estimator_file, (ModelFileError,)),
        Entry("Store", written.store_file, (StoreError,)),
        Entry("Report", written.report_file, (ValueError,)),
        Entry("Schema", written.schema, (DataError,)),
        Entry("network card", written.network_card, (TrainingError,)),
        Entry("training summary", written.training_summary, (TrainingError,)),
        Entry("checkpoint", written.checkpoint, (TrainingError,)),
        Entry("training plan", written.plan, (ValueError, TypeError)),
        Entry("kept result", written.kept_result, ()),
        Entry("Resumed", written.resumed_file, ()),
        Entry("Subspace.from_arrays", fitting.subspace_arrays, (ValueError, TypeError)),
        Entry("CellMoments.from_arrays", fitting.moment_arrays, (ValueError, TypeError)),
        Entry("layouts", folders.any_layout, ARRAYS),
        Entry("MultiNLI", folders.multinli_layout, ARRAYS),
        Entry("Waterbirds tar", folders.waterbirds_tar, ARRAYS),
        Entry("frozen features", folders.frozen, (FeatureFileError,)),
        *(Entry(f"fit {n}", run, (ValueError, TypeError)) for n, run in fitting.FITS.items()),
    )
}
