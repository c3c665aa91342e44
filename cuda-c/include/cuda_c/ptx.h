// The instructions of PTX, for the `asm` statements of programs.
//
// The front end includes this file before texts with such statements. Each instruction becomes a call of the
// function with its name in `cuda_c::ptx`. The first template argument holds the instruction's modifiers; the
// types follow. Registers hold bits.
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
#include "ptx/mbarrier.h"
#include "ptx/warp.h"
#include "ptx/video.h"
