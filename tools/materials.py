"""Write what a wheel brings with it: python tools/materials.py WHEEL FILE [REQUIREMENT ...].

The wheel is installed with all its extras into an empty environment (REQUIREMENTs first, such as
the build of torch that is wanted), and cyclonedx-py lists that as a CycloneDX bill of materials,
checked against its schema. Nothing in it is of chance: the time is that of the last commit.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def install(python: Path, *arguments: str) -> None:
    """Install into an environment that has no pip of its own to be listed."""
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*command, "--disable-pip-version-check", *arguments], check=True)


def describe(wheel: Path, folder: Path) -> Path:
    """Write the description of the project with the version of the wheel; return its path."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    path, version = folder / "pyproject.toml", wheel.name.split("-")[1]
    path.write_text(text.replace('dynamic = ["version"]', f'version = "{version}"'), "utf-8")
    return path


def list_materials(python: Path, description: Path, out: Path) -> None:
    """Write the bill of materials of an environment."""
    time = ["git", "log", "-1", "--format=%ct"]
    epoch = subprocess.run(time, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    command = [sys.executable, "-m", "cyclonedx_py", "environment", str(python)]
    command += ["--pyproject", str(description), "--mc-type", "library"]
    command += ["--output-reproducible", "--validate", "--output-file", str(out)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": epoch.strip()}
    subprocess.run(command, check=True, env=environment)


def main(wheel: Path, out: Path, requirements: list[str]) -> None:
    """Install the wheel and list what is there."""
    with tempfile.TemporaryDirectory() as name:
        venv.create(name, with_pip=False)
        python = Path(name) / ("Scripts" if os.name == "nt" else "bin") / "python"
        # By its name, so that the list does not say where the file was.
        install(python, "--no-index", "--no-deps", "--find-links", str(wheel.parent), "isrlearn")
        if requirements:
            install(python, *requirements)
        install(python, "isrlearn[all]")
        list_materials(python, describe(wheel, Path(name)), out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
