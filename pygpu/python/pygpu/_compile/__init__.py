"""CUDA C from its text to a module: headers, words that compilers lack, loaded kernels."""
