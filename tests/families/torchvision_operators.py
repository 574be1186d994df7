"""timm and transformers beside a torch without CUDA."""

import re
from importlib.util import find_spec
from pathlib import Path

import torch


def define_operators() -> None:
    """Define the operators of torchvision, whose own library does not load beside this torch.

    Built for CUDA, it defines none beside a torch for the processor, and then its import ends with
    "operator torchvision::nms does not exist". No test runs them.
    """
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None or hasattr(torch.ops.torchvision, "nms"):
        return
    text = (Path(spec.origin).parent / "_meta_registrations.py").read_text()
    pattern = r'register_(?:meta|fake)\("(?:torchvision::)?(\w+)"'
    for name in sorted(set(re.findall(pattern, text))):
        torch.library.define(f"torchvision::{name}", "() -> ()")
