// Arrays for textures, texture objects and surface objects.
#pragma once

#include "state.hpp"

namespace core {

// 0 if there is no such texel.
unsigned texel_bytes(unsigned format, unsigned channels);

// Forgets all of a context, whose memory goes with it.
void forget_textures(const Ref<Context>& context);

} // namespace core
