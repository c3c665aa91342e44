#pragma once

#include "state.hpp"

namespace core {

// The object that cuLinkCreate returns: it contains at most one image.
struct Link {
    Ref<Context> context;
    std::string image;
    unsigned images = 0;
};

} // namespace core
