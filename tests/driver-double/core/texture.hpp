// Texture arrays, texture objects and surface objects.
#pragma once

#include "state.hpp"

namespace core {

// Returns 0 for an unknown texel format.
unsigned texel_bytes(unsigned format, unsigned channels);

// Removes all objects of a context, whose memory is freed with it.
void forget_textures(const Ref<Context>& context);

} // namespace core
