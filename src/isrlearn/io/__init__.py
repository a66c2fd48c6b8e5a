"""Files of rows and of results, without pickle.

Parquet needs pyarrow, feature files and models need safetensors, estimators skops and their export
onnx (``pip install isrlearn[io]``); csv and npz need none of them.
"""

from isrlearn._resume import Resumed
from isrlearn._seal import is_whole
from isrlearn.io._data import Data, read_data
from isrlearn.io._features import FeatureFile, Features, FeatureWriter
from isrlearn.io._model import LinearModel
from isrlearn.io._open import open_rows
from isrlearn.io._saving import load, save
from isrlearn.io._schema import Column, Schema
from isrlearn.io._skops import TRUSTED

__all__ = [
    "Column",
    "Data",
    "FeatureFile",
    "FeatureWriter",
    "Features",
    "LinearModel",
    "Resumed",
    "Schema",
    "TRUSTED",
    "is_whole",
    "load",
    "open_rows",
    "read_data",
    "save",
]
