// Makes `cuda::std` an alias of `std`, because the system's C++ library runs on the CPU.
#pragma once

extern "C++" {
namespace std {}
namespace cuda {
namespace std {
using namespace ::std;
}
} // namespace cuda
}
