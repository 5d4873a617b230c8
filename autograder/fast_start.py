"""Imported first by the command line: leaves out what every start would wait for and nothing uses.

For the formats of internationalised addresses, which no schema of ours or nbformat's has, jsonschema compiles a
grammar when it is imported, and that takes a second.
"""

import sys

sys.modules.setdefault(
    "rfc3987_syntax", None
)  # as if it were not installed, which jsonschema allows
