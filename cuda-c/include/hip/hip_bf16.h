// The same header under HIP's name.
#pragma once
#include "../cuda_bf16.h"
