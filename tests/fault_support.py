"""What the tests of faults share: processes that meet with one, and how often they do."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

N_FAULTS = int(os.environ.get("ISRLEARN_FAULTS", "10"))
"""Kills over all commands; four times as many damaged bytes of each format."""
THOROUGH = N_FAULTS > 10
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class End:
    """How a process ended: its code, less than 0 for a signal, and what it printed."""

    code: int
    text: str

    @property
    def n_steps(self):
        return int(re.findall(r"^steps (\d+)$", self.text, re.MULTILINE)[-1])

    @property
    def lines(self):
        return [line for line in self.text.splitlines() if line and not line.startswith("steps ")]


class Processes:
    """Copies of one process that has imported everything, each with a fault of its own."""

    def __init__(self, folder):
        self.folder = folder
        tests = Path(__file__).parent
        paths = [str(tests), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._first = subprocess.Popen(
            [sys.executable, str(tests / "fault_process.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(paths)},
        )

    def _ask(self, **request):
        self._first.stdin.write(json.dumps(request) + "\n")
        self._first.stdin.flush()
        return json.loads(self._first.stdout.readline())

    def start(self, *words, below=None, cwd=None, **fault):
        """Start a command (or code=...); return its process id."""
        told = {} if "code" in fault else {"words": [str(word) for word in words]}
        places = {"below": str(below or self.folder), "cwd": str(cwd or self.folder)}
        return self._ask(**told, **places, **fault)["pid"]

    def end(self, pid):
        """Wait for a process."""
        return End(**self._ask(wait=pid))

    def run(self, *words, **fault):
        """Start a command (or code=...) and wait for it."""
        return self.end(self.start(*words, **fault))

    def close(self):
        self._first.stdin.close()
        self._first.wait(60)
        self._first.stdout.close()


def litter(folder):
    """Return files that no one would miss: those aside, and journals."""
    found = [path.relative_to(folder) for path in sorted(folder.rglob("*"))]
    return [
        str(path)
        for path in found
        if any(part.startswith(".") for part in path.parts) or path.name.endswith("-journal")
    ]


def make_world_aside(processes, folder):
    """Let another process make the files of `command_support`: this one need not import torch."""
    code = (
        "import importlib.util, json, pathlib, command_support\n"
        "if importlib.util.find_spec('torch'):\n"
        "    from networks import test_commands\n"
        "    test_commands.write_images.__defaults__ = (120, 0)\n"  # each image costs a file
        f"files = command_support.make_world(pathlib.Path({str(folder)!r}))\n"
        "print('\\nfiles ' + json.dumps({name: str(path) for name, path in files.items()}))\n"
    )
    made = processes.run(code=code, small_steps=True)
    assert made.code == 0, made.text
    (line,) = [line for line in made.lines if line.startswith("files ")]
    return {name: Path(path) for name, path in json.loads(line[6:]).items()}
