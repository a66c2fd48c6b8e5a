"""Install a wheel in a new environment and use it: python tools/install_check.py WHEEL FOLDER.

First the core alone, then the command line. The repository is out of reach of both: what works here
works from the wheel.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

FIT = """
import numpy as np, isrlearn
from isrlearn import ISRClassifier, baselines, datasets, metrics
random = np.random.default_rng(0)
environments, y = random.integers(0, 2, (2, 400))
X = np.column_stack([y, 3 * environments]) + random.normal(size=(400, 2))
model = ISRClassifier().fit(X, y, environments=environments)
print(isrlearn.__version__, isrlearn.__file__, "removed", model.isr_.n_spurious_)
"""
EXTRAS = ("pandas", "matplotlib", "cyclopts", "torch", "dask", "pyarrow", "skops", "onnx")
NO_EXTRA = f"""
from importlib.util import find_spec
raise SystemExit([name for name in {EXTRAS} if find_spec(name)] or None)
"""
BESIDE_THE_CODE = """
from importlib.resources import files
package = files("isrlearn")
for name in ("py.typed", "reporting/templates/report.html.j2", "datasets/data/penguins.csv",
             "reproduce/configs/waterbirds-resnet50.toml"):
    assert package.joinpath(name).is_file(), name
"""


class Environment:
    """A new environment, and programs run in it without a word from outside.

    Parameters
    ----------
    folder : Path
        Where it is made; what was there is lost.
    """

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True, clear=True)
        self.folder = folder.resolve()
        self.programs = self.folder / ("Scripts" if os.name == "nt" else "bin")
        outside = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        self.surroundings = outside | {"VIRTUAL_ENV": str(self.folder)}

    def run(self, program: str, *arguments: str) -> int:
        """Run a program of the environment in its folder; return how it ended."""
        command = [str(self.programs / program), *arguments]
        return subprocess.run(command, cwd=self.folder, env=self.surroundings).returncode

    def must(self, program: str, *arguments: str) -> None:
        """Run a program; end here if it fails."""
        if code := self.run(program, *arguments):
            sys.exit(f"{program} {' '.join(arguments)}: ended with {code}")

    def install(self, requirement: str) -> None:
        """Install a requirement with what it needs."""
        quiet = ("--quiet", "--disable-pip-version-check")
        self.must("python", "-m", "pip", "install", *quiet, requirement)


def main(wheel: Path, folder: Path) -> None:
    """Install the core and use it, then the same with the command line."""
    new = Environment(folder)
    new.install(str(wheel))
    for code in (NO_EXTRA, BESIDE_THE_CODE, FIT):
        new.must("python", "-I", "-c", code)
    if new.run("isrlearn", "--version") != 2:  # and it says which extra it needs
        sys.exit("the command line did not ask for its extra")
    new.install(f"{wheel}[bench]")
    new.must("isrlearn", "--version")
    new.must("isrlearn", "demo", "--out", "demo")
    new.must("python", "-m", "pip", "check")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
