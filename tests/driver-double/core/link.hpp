#pragma once

#include "state.hpp"

namespace core {

// What cuLinkCreate makes: the double links one image with nothing.
struct Link {
    Ref<Context> context;
    std::string image;
    unsigned images = 0;
};

} // namespace core
