"""The commands of ``isrlearn`` in their groups."""

from typing import Any, Literal

from cyclopts import App, Group

from isrlearn import __version__
from isrlearn._cli_bench_show import bench
from isrlearn._cli_compare import compare
from isrlearn._cli_data import diagnose
from isrlearn._cli_demo import demo
from isrlearn._cli_export import export
from isrlearn._cli_fit import fit
from isrlearn._cli_networks import extract, repair, train
from isrlearn._cli_predict import predict
from isrlearn._cli_report import report
from isrlearn._cli_reproduce import reproduce
from isrlearn._cli_support import UserError, note, say, terminal

_HELP = """\
Invariant-feature Subspace Recovery: find the directions in which environments differ given the \
class, remove them, and fit or repair a linear model on the rest.

Example: isrlearn compare patients.csv --label disease --environment hospital
"""
_EPILOGUE = """\
Where to start: isrlearn demo shows what it is about. With rows of your own: isrlearn compare, to \
see whether it helps, then isrlearn fit. Each command says more: isrlearn fit --help.

Exit codes: 0 done; 2 a mistake in the call or in a file, told in one line on standard error; 130 \
stopped by Ctrl-C, with nothing half-written left; 143 and 129 the same by SIGTERM and SIGHUP; 141 \
nobody reads what is printed.
"""
COMMANDS: dict[str, tuple[Any, ...]] = {
    "Start": (demo,),
    "Your data": (compare, fit, predict, export, diagnose, report),
    "Networks": (train, extract, repair),
    "The paper": (bench, reproduce),
}

app = App(
    name="isrlearn",
    help=_HELP,
    help_epilogue=_EPILOGUE,
    version=__version__,
    suppress_keyboard_interrupt=False,  # main tells what became of the files
    console=terminal(),
    group_commands=Group("This program", sort_key=len(COMMANDS)),
)
for order, (title, commands) in enumerate(COMMANDS.items()):
    group = Group(title, sort_key=order)
    for place, command in enumerate(commands):
        if isinstance(command, App):
            command.group, command.sort_key = group, place
            app.command(command)
        else:
            app.command(command, group=group, sort_key=place, help_epilogue="")


@app.command(name="--install-completion", help_epilogue="")
def install_completion(*, shell: Literal["bash", "zsh", "fish"] | None = None) -> None:
    """Let the Tab key complete commands and options, from the next shell on.

    Writes a script to the place where the shell looks for it, and for bash and zsh a line to
    .bashrc or .zshrc.

    Example: isrlearn --install-completion --shell zsh

    Parameters
    ----------
    shell
        Which shell; the one that runs this command if left out.
    """
    from cyclopts.completion.detect import ShellDetectionError

    try:
        script = app.install_completion(shell=shell)
    except ShellDetectionError:
        raise UserError("which shell is not known: add --shell bash, zsh or fish.") from None
    say(f"Completion: {script}")
    note("note: bash and zsh read it through a line in .bashrc or .zshrc, which is there now.")
