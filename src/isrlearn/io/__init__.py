"""Files that hold results, without pickle. Needs safetensors (``pip install isrlearn[io]``)."""

from isrlearn.io._features import FeatureFile, Features, FeatureWriter

__all__ = ["FeatureFile", "FeatureWriter", "Features"]
