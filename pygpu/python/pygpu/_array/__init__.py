"""The functions of ``gpuarray`` and ``curandom``, and what they add to the class of arrays."""
