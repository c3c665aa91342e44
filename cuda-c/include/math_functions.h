// The functions of math.h.
#pragma once
#include "math.h"
