// The compilers of kernels have clock, clock64 and clock_t built in.
