"""Build sdist and wheel of the last commit twice and compare: python tools/build_twice.py FOLDER.

The commit is unpacked in two places that differ in what must not matter: folder, time and
permissions of the files, time zone, language, order of hashes. Both builds must be the same bit by
bit, and hold what the commit holds and nothing else. Then they are put into the folder.
"""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOT_FOR_USERS = (".ci/", ".pre-commit-config.yaml")  # left out of the sdist
OTHERWISE = {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "PYTHONHASHSEED": "123"}


def git(*arguments: str) -> bytes:
    """Return what a command of git prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def unpack(folder: Path) -> None:
    """Write the files of the last commit, and nothing that lies beside them."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", "HEAD"))) as archive:
        archive.extractall(folder, filter="data")


def disturb(folder: Path) -> None:
    """Give the files another time, and permissions for their owner alone."""
    for path in folder.rglob("*"):
        os.utime(path, (10**9, 10**9))
        path.chmod(path.stat().st_mode & 0o700)


def build(source: Path, out: Path, surroundings: dict[str, str]) -> dict[str, str]:
    """Build the sdist, and the wheel out of it; return the hash of each file by its name."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    epoch = git("log", "-1", "--format=%ct").decode().strip()
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | surroundings | {"SOURCE_DATE_EPOCH": epoch},
    )
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(out.iterdir())}


def in_sdist(path: Path) -> set[str]:
    """Return the files of an sdist, without its own folder."""
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def in_wheel(path: Path) -> set[str]:
    """Return the files of a wheel, without what describes it."""
    with zipfile.ZipFile(path) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def faults(out: Path) -> list[str]:
    """Return a line for every file that is missing or should not be there."""
    committed = set(git("ls-tree", "-r", "--name-only", "HEAD").decode().splitlines())
    source = {name for name in committed if not name.startswith(NOT_FOR_USERS)} | {"PKG-INFO"}
    package = {name.removeprefix("src/") for name in committed if name.startswith("src/")}
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    pairs = [(sdist.name, source, in_sdist(sdist)), (wheel.name, package, in_wheel(wheel))]
    return [
        f"{name}: {fault} {path}"
        for name, wanted, found in pairs
        for fault, paths in (("lacks", wanted - found), ("should not hold", found - wanted))
        for path in sorted(paths)
    ]


def main(folder: Path) -> int:
    """Build twice, print hashes and faults, and return 1 if there are faults."""
    if git("status", "--porcelain"):
        sys.stdout.write("note: what is not committed is not built\n")
    with tempfile.TemporaryDirectory() as name:
        here, there = Path(name) / "one", Path(name) / "elsewhere" / "two"
        unpack(here)
        unpack(there)
        disturb(there)
        first = build(here, Path(name) / "first", {})
        second = build(there, Path(name) / "second", OTHERWISE)
        wrong = faults(Path(name) / "first")
        if first != second:
            wrong.append(f"the second build differs: {second}")
        if not wrong:
            shutil.copytree(Path(name) / "first", folder, dirs_exist_ok=True)
    lines = [f"{digest}  {file}" for file, digest in first.items()]
    sys.stdout.write("\n".join([*lines, *wrong]) + "\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
