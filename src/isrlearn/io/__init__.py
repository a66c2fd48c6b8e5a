"""Files of rows and of results, without pickle.

Parquet needs pyarrow and feature files need safetensors (``pip install isrlearn[io]``); csv and npz
need neither.
"""

from isrlearn._resume import Resumed
from isrlearn.io._data import Data, read_data
from isrlearn.io._features import FeatureFile, Features, FeatureWriter
from isrlearn.io._model import LinearModel
from isrlearn.io._open import open_rows
from isrlearn.io._schema import Column, Schema

__all__ = [
    "Column",
    "Data",
    "FeatureFile",
    "FeatureWriter",
    "Features",
    "LinearModel",
    "Resumed",
    "Schema",
    "open_rows",
    "read_data",
]
