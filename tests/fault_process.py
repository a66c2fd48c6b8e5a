"""A process that has imported everything, and starts copies of itself that meet with a fault.

It reads a request per line and answers each with a line; `fault_support.Processes` talks to it.
Starting a copy takes milliseconds, where a new process would import for seconds.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import time
import traceback

CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "sqlite3.connect")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Steps:
    """Counts what changes files below a folder; kills the process before one of these steps."""

    def __init__(self, below, kill_at):
        self.below, self.kill_at, self.count = below, kill_at, 0

    def __call__(self, event, details):
        # Folders are emptied by names that are relative to them.
        inside = event in ("os.remove", "os.rmdir") and details[-1] != -1
        if not inside and self.below not in str(details[:1]):
            return
        if event in CHANGES or (event == "open" and (details[2] or 0) & WRITING):
            self.step()

    def step(self):
        self.count += 1
        if self.count == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def import_everything():
    import isrlearn.benchmark
    import isrlearn.cli
    import isrlearn.leaderboard
    import isrlearn.reporting
    from isrlearn.benchmark import figures  # noqa: F401

    others = ("pandas", "pyarrow.parquet", "pyarrow.pandas_compat", "onnx", "skops.io")
    # What optimizers of torch import when the first is made, and reading an image.
    others += ("safetensors.numpy", "torch._dynamo", "transformers", "PIL.ImageOps")
    for name in others:
        with contextlib.suppress(ImportError):
            __import__(name)
    with contextlib.suppress(ImportError):
        import isrlearn.networks
        import isrlearn.reproduce.runs  # noqa: F401


def take_small_steps():
    """Write more often than in earnest, so that there are more moments to be killed at."""
    from isrlearn.io import FeatureWriter

    FeatureWriter.__init__.__kwdefaults__["rows_per_shard"] = 64
    if "isrlearn.networks" in sys.modules:
        from isrlearn.networks import _training

        _training.SECONDS_BETWEEN_CHECKPOINTS = -1.0


def drop_powers():
    """Let the modes of files hold for the superuser, too (Linux)."""
    if os.geteuid() != 0:
        return
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capget(header, data) == 0:
        for place in (0, 1):  # effective and permitted: neither modes nor owners are overridden
            data[place] &= ~0b1110
        libc.capset(header, data)


def let_the_clock_jump(seed):
    """Let all clocks of Python go forth and back by up to a year."""
    import random

    chance = random.Random(seed)
    year = 365.0 * 24 * 3600
    for name in ("time", "monotonic"):
        real = getattr(time, name)
        setattr(time, name, lambda real=real: real() + chance.uniform(-year, year))
        as_integer = getattr(time, f"{name}_ns")
        jumped = lambda real=as_integer: real() + int(1e9 * chance.uniform(-year, year))  # noqa: E731
        setattr(time, f"{name}_ns", jumped)


def arm(request):
    """Prepare the fault that was asked for; return the counter of steps."""
    steps = Steps(request["below"], request.get("kill_at"))
    real_sync = os.fsync

    def sync(handle):
        steps.step()
        real_sync(handle)

    os.fsync = sync
    sys.addaudithook(steps)
    if request.get("clock") is not None:
        let_the_clock_jump(request["clock"])
    if request.get("powerless"):
        drop_powers()
    if request.get("limit") is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["limit"],) * 2)
        # Python lets a write fail; the system's way is to end the process within it.
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if request.get("deadly") else signal.SIG_IGN)
    return steps


def run(request):
    """Run a command or some code, and tell the code it ends with."""
    if "code" in request:
        exec(compile(request["code"], "code", "exec"), {"__name__": "__main__"})
        return 0
    from isrlearn.cli import main

    sys.argv = ["isrlearn", *request["words"]]
    try:
        main(request["words"])
    except SystemExit as end:
        return end.code


def child(request, output):
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    code = 1
    try:
        os.chdir(request["cwd"])
        if request.get("small_steps"):
            take_small_steps()
        steps = arm(request)
        code = run(request)
        print(f"\nsteps {steps.count}")
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def serve(request, outputs):
    """Start a copy and return its number, or wait for one and return how it ended."""
    if "wait" in request:
        pid = request["wait"]
        with os.fdopen(outputs.pop(pid), "rb") as file:
            text = file.read().decode(errors="replace")
        _, status = os.waitpid(pid, 0)
        return {"code": os.waitstatus_to_exitcode(status), "text": text}
    end, begin = os.pipe()
    pid = os.fork()
    if pid == 0:
        child(request, begin)
    os.close(begin)
    outputs[pid] = end
    return {"pid": pid}


if __name__ == "__main__":
    import_everything()
    known = {}
    for line in sys.stdin:
        answer = serve(json.loads(line), known)
        sys.__stdout__.write(json.dumps(answer) + "\n")
        sys.__stdout__.flush()
