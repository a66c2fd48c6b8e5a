"""Walk the first page as somebody new would: python docs/fresh_start.py FOLDER does it.

Makes an environment in the folder, installs isrlearn there with the first command of start.md, and
runs the rest of the page with it.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

import page_blocks

PAGE = page_blocks.HERE / "start.md"


def install_commands() -> list[str]:
    """Return the commands of the first block of the page."""
    first = page_blocks.blocks(PAGE.read_text(encoding="utf-8"))[0]
    return [line.removeprefix("$ ") for line in first.text.splitlines()]


def main(folder: Path) -> None:
    """Install into a new environment and run the page with it."""
    venv.create(folder, with_pip=True, clear=True)
    programs = folder.resolve() / ("Scripts" if os.name == "nt" else "bin")
    outside = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    surroundings = outside | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    for command in install_commands():
        subprocess.run(
            command, shell=True, check=True, cwd=page_blocks.HERE.parent, env=surroundings
        )
    run_page = str(page_blocks.HERE / "page_blocks.py"), "--check", PAGE.name
    check = [str(programs / "python"), *run_page]
    subprocess.run(check, check=True, cwd=folder, env=surroundings)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
