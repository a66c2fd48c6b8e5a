"""``python -m isrlearn`` is the command ``isrlearn``."""

from isrlearn.cli import main

if __name__ == "__main__":  # a worker process that is started afresh imports this module, too
    main()
