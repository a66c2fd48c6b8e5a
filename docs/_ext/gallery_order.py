"""The order in which the gallery is best read."""

ORDER = (
    "plot_colored_digits.py",
    "plot_isr_mean.py",
    "plot_isr_cov.py",
    "plot_rank_test.py",
    "plot_partial_labels.py",
    "plot_penguins.py",
    "plot_regression.py",
    "plot_streaming.py",
)


class ForReaders:
    """Sort key of an example: its place in `ORDER`; what is not there comes last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        """Return the key of a file."""
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)

    def __repr__(self) -> str:
        return "ForReaders"
