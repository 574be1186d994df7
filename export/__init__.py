"""From the weights of an attention layer to a verified model directory.

``export_module(layer, "models", name="my_layer")`` does it for a live PyTorch layer; the
command line (``limelight-export``) does it for checkpoints.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from export.module import export_module

__all__ = ["export_module"]


def __getattr__(name: str) -> object:
    if name == "export_module":
        from export.module import export_module

        return export_module
    raise AttributeError(f"module 'export' has no attribute '{name}'")
