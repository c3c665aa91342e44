// Memory until the function returns. The front end includes this where a text uses it and does not declare it, and
// keeps kernels with it from being a part of the loop over threads, whose memory it would be.
#pragma once

#define alloca(bytes) __builtin_alloca(bytes)
