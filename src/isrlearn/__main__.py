"""``python -m isrlearn`` is the command ``isrlearn``."""

from isrlearn.cli import main

main()
