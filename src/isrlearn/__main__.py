"""``python -m isrlearn`` is the command ``isrlearn``."""

import sys

try:
    from isrlearn.cli import main

    if __name__ == "__main__":  # a worker that is started afresh imports this module, too
        main()
except KeyboardInterrupt:  # between the two: each of them tells by itself
    sys.stderr.write("isrlearn: interrupted; nothing was written.\n")
    exec("")  # see main
    sys.exit(130)
