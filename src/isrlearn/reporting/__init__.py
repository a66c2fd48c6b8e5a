"""The report: one self-contained page, and the pictures of the method.

Needs matplotlib and jinja2 (``pip install isrlearn[bench]``).
"""

from isrlearn.reporting._bench import bench_html
from isrlearn.reporting._geometry import geometry_html
from isrlearn.reporting._made import made_now
from isrlearn.reporting._report import Report
from isrlearn.reporting._sources import report

__all__ = ["Report", "bench_html", "geometry_html", "made_now", "report"]
