"""What a fit can be trusted for: what was found, how sure it is, which assumption fails."""

from isrlearn.diagnosis._diagnose import (
    diagnose as diagnose,
)
from isrlearn.diagnosis._diagnosis import (
    Diagnosis,
    Finding,
)
from isrlearn.diagnosis._uncertainty import (
    chance_of as chance_of,
)

__all__ = ["Diagnosis", "Finding"]
