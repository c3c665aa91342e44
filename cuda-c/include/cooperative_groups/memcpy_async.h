// Copies by a group are declared with the groups.
#pragma once
#include "../cooperative_groups.h"
