"""Sessions over Python and dependency versions; `nox -l` lists them."""

import nox

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "tests"]


@nox.session(python=["3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    session.install(".[all]", *nox.project.dependency_groups(PYPROJECT, "test"))
    session.run("pytest", "-n", "auto", "-q", *session.posargs)


@nox.session(python="3.11")
def oldest(session: nox.Session) -> None:
    """The oldest supported versions of what the core depends on."""
    session.install(".[all]", *nox.project.dependency_groups(PYPROJECT, "test"))
    session.install(
        "numpy==1.26.*", "scipy==1.11.*", "scikit-learn==1.6.*", "pandas==2.2.*", "pyarrow==15.*"
    )
    session.run("pytest", "-n", "auto", "-q", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    session.install(".[all]", *nox.project.dependency_groups(PYPROJECT, "lint"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("mypy")


PYPROJECT = nox.project.load_toml("pyproject.toml")
