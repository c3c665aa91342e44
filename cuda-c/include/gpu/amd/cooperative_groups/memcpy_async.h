// Copies by a group are declared with the groups.

#ifndef PYGPU_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H
#define PYGPU_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H

#include <cooperative_groups.h>

#endif
