// 16-bit numbers with the range of float: `__nv_bfloat16`, its pair, and their functions.
#pragma once

#include "cuda_fp16.h"
#include "cuda_c/bf16.h"
