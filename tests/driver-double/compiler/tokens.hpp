// The tokens of C++ text, as far as finding declarations needs them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace compiler {

struct Token {
    size_t begin, end;
    enum Kind { Word, Mark, Literal, Directive } kind;
};

// Without comments; a directive is one token with all its lines.
std::vector<Token> tokens_of(const std::string& text);

} // namespace compiler
