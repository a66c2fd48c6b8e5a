"""What a fit can be trusted for: what was found, how sure it is, which assumption fails."""

from isrlearn.diagnosis._diagnose import (
    Fit as Fit,
    diagnose as diagnose,
)
from isrlearn.diagnosis._diagnosis import (
    Diagnosis,
    Finding,
)
from isrlearn.diagnosis._uncertainty import (
    null_spectra as null_spectra,
)

__all__ = ["Diagnosis", "Finding"]
