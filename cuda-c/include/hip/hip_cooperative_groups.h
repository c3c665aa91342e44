// The same header under HIP's name.
#pragma once
#include "../cooperative_groups.h"
