// Stack memory that lives until the function returns. The front end includes this header in texts that call
// `alloca` without declaring it. It also keeps their kernels from being inlined into the loop over threads,
// because the memory would then live as long as that loop.
#pragma once

#define alloca(bytes) __builtin_alloca(bytes)
