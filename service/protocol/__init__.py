"""Bytes to requests and answers to bytes. Pure: no FastAPI, no onnxruntime."""
