// The same header under HIP's name.
#pragma once
#include "../cuda_fp16.h"
