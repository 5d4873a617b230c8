"""Makes the hand-made notebooks importable: `import graded`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
