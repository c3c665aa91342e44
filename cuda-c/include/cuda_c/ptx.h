// Instructions of PTX, for the statements `asm` of programs.
//
// The front end includes this file in front of texts that have such statements. For each instruction
// it writes a call of the function of its name in `cuda_c::ptx`. The first argument of the template has the
// instruction's modifiers; its types follow. Registers are bits.
#pragma once

#include "narrow.h"
#include "ptx/values.h"
#include "ptx/integer.h"
#include "ptx/bits.h"
#include "ptx/floating.h"
#include "ptx/narrow.h"
#include "ptx/compare.h"
#include "ptx/convert.h"
#include "ptx/memory.h"
#include "ptx/warp.h"
#include "ptx/video.h"
