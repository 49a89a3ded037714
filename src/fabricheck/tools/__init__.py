"""Running other tools (OSU, rccl-tests, nccl-tests) and telling what they found as a document."""
