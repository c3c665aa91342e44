// The types that hipRTC of ROCm 5 and 6 has built in and hipRTC of ROCm 7 lacks.
typedef int int32_t;
typedef long long int64_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
