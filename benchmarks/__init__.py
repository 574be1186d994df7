"""What the server costs over onnxruntime alone."""
