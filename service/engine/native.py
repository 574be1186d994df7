"""Objects of onnxruntime, which has no types of its own."""

from typing import Any, TypeAlias

# Its classes by name would be a promise that nobody checks; a test may stand in for any of them.
Native: TypeAlias = Any
