#include "tokens.hpp"

#include <algorithm>
#include <cctype>

namespace compiler {
namespace {

bool word_start(char c) { return std::isalpha((unsigned char)c) || c == '_'; }
bool word_part(char c) { return std::isalnum((unsigned char)c) || c == '_'; }

size_t skip_quoted(const std::string& text, size_t at) {
    const char quote = text[at++];
    while (at < text.size() && text[at] != quote && text[at] != '\n') {
        at += text[at] == '\\' ? 2 : 1;
    }
    return std::min(at + 1, text.size());
}

size_t skip_raw(const std::string& text, size_t at) {
    const size_t open = text.find('(', at);
    if (open == std::string::npos) return text.size();
    const std::string close = ")" + text.substr(at + 1, open - at - 1) + "\"";
    const size_t end = text.find(close, open);
    return end == std::string::npos ? text.size() : end + close.size();
}

size_t skip_directive(const std::string& text, size_t at) {
    while (at < text.size() && text[at] != '\n') {
        if (text.compare(at, 2, "/*") == 0) {
            const size_t end = text.find("*/", at + 2);
            at = end == std::string::npos ? text.size() : end + 2;
        } else {
            at += text[at] == '\\' ? 2 : 1;
        }
    }
    return std::min(at, text.size());
}

} // namespace

std::vector<Token> tokens_of(const std::string& text) {
    std::vector<Token> tokens;
    bool line_start = true;
    for (size_t at = 0; at < text.size();) {
        const char c = text[at];
        const size_t begin = at;
        if (c == '\n') {
            line_start = true;
            ++at;
        } else if (std::isspace((unsigned char)c)) {
            ++at;
        } else if (text.compare(at, 2, "//") == 0) {
            at = std::min(text.find('\n', at), text.size());
        } else if (text.compare(at, 2, "/*") == 0) {
            const size_t end = text.find("*/", at + 2);
            at = end == std::string::npos ? text.size() : end + 2;
        } else if (c == '#' && line_start) {
            at = skip_directive(text, at);
            tokens.push_back({begin, at, Token::Directive});
        } else if (word_start(c)) {
            while (at < text.size() && word_part(text[at])) ++at;
            if (at < text.size() && text[at] == '"' && text[at - 1] == 'R') {
                at = skip_raw(text, at);
                tokens.push_back({begin, at, Token::Literal});
            } else {
                tokens.push_back({begin, at, Token::Word});
            }
            line_start = false;
        } else if (c == '"' || c == '\'') {
            at = skip_quoted(text, at);
            tokens.push_back({begin, at, Token::Literal});
            line_start = false;
        } else if (std::isdigit((unsigned char)c)) {
            const auto part = [](char it) { return word_part(it) || it == '.' || it == '\''; };
            while (at < text.size() && part(text[at])) ++at;
            tokens.push_back({begin, at, Token::Literal});
            line_start = false;
        } else {
            at += text.compare(at, 2, "::") == 0 ? 2 : 1;
            tokens.push_back({begin, at, Token::Mark});
            line_start = false;
        }
    }
    return tokens;
}

} // namespace compiler
