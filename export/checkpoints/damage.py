"""What is said of a file that cannot be read as what it claims to be."""

from pathlib import Path

from export.errors import CheckpointError


def damaged(path: Path, reason: object = "not what torch.save writes") -> CheckpointError:
    """The refusal of a file that cannot be parsed."""
    return CheckpointError(
        f"checkpoint '{path}' is damaged or cut off ({reason}); copy or download it again"
    )
