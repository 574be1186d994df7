"""From ONNX files to answers: the server. It loads neither torch nor onnx."""
