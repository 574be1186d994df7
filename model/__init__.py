"""What attention is: the contract, the PyTorch module, and the float64 reference.

``import model`` loads no torch, so that the server may use `model.contract`;
``from model import MultiHeadAttention`` loads it on first use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.attention import MultiHeadAttention

__all__ = ["MultiHeadAttention"]


def __getattr__(name: str) -> object:
    if name == "MultiHeadAttention":
        from model.attention import MultiHeadAttention

        return MultiHeadAttention
    raise AttributeError(f"module 'model' has no attribute '{name}'")
