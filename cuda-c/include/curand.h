// The functions of cuRAND that a host calls: there is nothing for a kernel in them, but programs name them
// beside curand_kernel.h.
