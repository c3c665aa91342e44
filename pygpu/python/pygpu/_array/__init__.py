"""The functions of ``gpuarray`` and ``curandom``, and methods of the class of arrays."""
