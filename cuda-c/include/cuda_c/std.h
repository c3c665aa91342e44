// `cuda::std` is `std`: what the system's library has runs on the CPU.
#pragma once

extern "C++" {
namespace std {}
namespace cuda {
namespace std {
using namespace ::std;
}
} // namespace cuda
}
