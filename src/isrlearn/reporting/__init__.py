"""The report: one self-contained page, and the pictures of the method.

Needs matplotlib and jinja2 (``pip install isrlearn[bench]``).
"""

try:
    from isrlearn.reporting._bench import bench_html
    from isrlearn.reporting._geometry import geometry_html
    from isrlearn.reporting._made import made_now
    from isrlearn.reporting._report import Report
    from isrlearn.reporting._sources import report
except ModuleNotFoundError as error:
    if (error.name or "").startswith("isrlearn"):
        raise
    raise ImportError(
        f"reports need {error.name}, of the extra 'bench': pip install 'isrlearn[bench]'"
    ) from error

__all__ = ["Report", "bench_html", "geometry_html", "made_now", "report"]
