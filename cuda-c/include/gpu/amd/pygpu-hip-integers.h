// The types that are built into hipRTC of ROCm 5 and 6, and not into that of 7.
typedef int int32_t;
typedef long long int64_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
