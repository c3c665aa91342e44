// The compilers of kernels have printf built in.
