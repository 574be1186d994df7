"""From the file of a trained network to the weights of one attention layer.

Each family of checkpoints is one file with two functions: ``find`` says which layers are in a
file by the names of its tensors, and ``read`` turns the tensors of one layer into `Weights`.
`checkpoint.read_checkpoint` is the door; `detect.FAMILIES` lists the families.
"""
