"""Tools that prove the tests, the readers and the verdict: `python -m proof.faults` and its like.

What they need of the tests (factories, composed sessions) they import as tests do, from the folder
`tests`.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
