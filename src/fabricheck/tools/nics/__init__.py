"""The NICs of a node: read from the kernel, compared with its node model and its fabric."""
