// The type of lists in braces, which NVIDIA's compilers declare without a header. The front end includes this header
// in texts with a loop over such a list.
#pragma once

#if __has_include(<initializer_list>)
#include <initializer_list>
#endif
