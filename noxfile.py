"""Sessions over Python and dependency versions; `nox -l` lists them."""

import nox

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "tests"]

PYPROJECT = nox.project.load_toml("pyproject.toml")


def group(name: str) -> list[str]:
    """What a dependency group of pyproject.toml lists."""
    return list(nox.project.dependency_groups(PYPROJECT, name))


def run_tests(session: nox.Session, *how: str) -> None:
    session.install(*how, ".[all]", *group("test"))
    session.run("pytest", "-n", "auto", "-q", *session.posargs)


@nox.session(python=["3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    run_tests(session)


@nox.session(python="3.11")
def oldest(session: nox.Session) -> None:
    """The oldest supported versions of everything, torch included."""
    run_tests(session, "--constraint", "tests/oldest.txt")


@nox.session(python="3.13")
def newest(session: nox.Session) -> None:
    """The newest versions of everything, on the newest Python."""
    run_tests(session, "--upgrade")


@nox.session
def lint(session: nox.Session) -> None:
    session.install(".[all]", *group("lint"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("mypy")
