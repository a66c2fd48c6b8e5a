"""Files that hold results, without pickle. Needs safetensors (``pip install isrlearn[io]``)."""

from isrlearn.io._features import FeatureFile, FeatureWriter, Features

__all__ = ["FeatureFile", "FeatureWriter", "Features"]
