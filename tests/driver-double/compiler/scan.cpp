#include "scan.hpp"
#include "tokens.hpp"

#include <map>
#include <vector>

namespace compiler {
namespace {

struct Kernel {
    std::string path;       // as written: `space::name<float>`
    std::string parameters; // the text between the parentheses
    std::string bound = "0";
    bool is_template = false, is_instance = false, is_definition = false;
    size_t end; // the token of `{` or `;`
};

class Scanner {
public:
    explicit Scanner(const std::string& text) : text(text), tokens(tokens_of(text)) {}

    Scanned run();

private:
    const std::string& text;
    std::vector<Token> tokens;
    struct Edit {
        size_t end; // of what the text replaces
        std::string text;
    };
    std::map<size_t, Edit> edits; // by where they begin
    std::map<std::string, int> seen;
    int kernels = 0, variables = 0;

    std::string at(size_t token) const {
        if (token >= tokens.size()) return "";
        return text.substr(tokens[token].begin, tokens[token].end - tokens[token].begin);
    }
    bool is(size_t token, const char* what) const { return at(token) == what; }
    size_t matching(size_t open) const;
    size_t after_template_arguments(size_t open) const;
    std::string between(size_t open, size_t close) const {
        return text.substr(tokens[open].end, tokens[close].begin - tokens[open].end);
    }
    void insert(size_t place, const std::string& added) {
        Edit& edit = edits.emplace(place, Edit{place, ""}).first->second;
        edit.text += added;
    }
    bool kernel(size_t start, Kernel& found) const;
    void describe(const Kernel& kernel, size_t after, int index);
    void shared(size_t token, size_t start, bool in_code, int index);
    void dynamic_shared(size_t token, size_t start, size_t end, bool in_code);
    size_t assembly(size_t token);
};

// The token of the bracket that closes this one.
size_t Scanner::matching(size_t open) const {
    int depth = 0;
    for (size_t i = open; i < tokens.size(); ++i) {
        if (tokens[i].kind != Token::Mark) continue;
        const char c = text[tokens[i].begin];
        depth += c == '(' || c == '[' || c == '{';
        depth -= c == ')' || c == ']' || c == '}';
        if (depth == 0) return i;
    }
    return tokens.size();
}

size_t Scanner::after_template_arguments(size_t open) const {
    int depth = 0;
    for (size_t i = open; i < tokens.size(); ++i) {
        if (is(i, "(")) i = matching(i);
        depth += is(i, "<");
        depth -= is(i, ">");
        if (depth == 0) return i + 1;
    }
    return tokens.size();
}

// Reads the declaration that begins at a token and has `__global__` in it.
bool Scanner::kernel(size_t start, Kernel& found) const {
    size_t i = start;
    if (is(i, "template")) {
        found.is_instance = !is(i + 1, "<");
        found.is_template = !found.is_instance;
        i = found.is_instance ? i + 1 : after_template_arguments(i + 1);
    }
    for (; i < tokens.size(); ++i) {
        if (tokens[i].kind != Token::Word) {
            if (is(i, ";") || is(i, "{")) return false;
            continue;
        }
        size_t end = i + 1;
        while (is(end, "::") && end + 1 < tokens.size()) end += 2;
        if (is(end, "<")) end = after_template_arguments(end);
        if (!is(end, "(")) {
            if (end > i + 1 && tokens[end - 1].kind == Token::Word) i = end - 2;
            continue;
        }
        const size_t close = matching(end);
        if (close >= tokens.size()) return false;
        const std::string inside = between(end, close);
        const std::string word = at(i);
        if (word == "__launch_bounds__") {
            found.bound = inside.substr(0, inside.find(','));
            i = close;
        } else if (word.compare(0, 2, "__") == 0 || word == "alignas" || word == "decltype") {
            i = close; // an attribute
        } else {
            found.path = text.substr(tokens[i].begin, tokens[end].begin - tokens[i].begin);
            found.parameters = inside;
            for (found.end = close; found.end < tokens.size(); ++found.end) {
                if (is(found.end, ";")) return true;
                if (is(found.end, "{")) return found.is_definition = true;
            }
            return false;
        }
    }
    return false;
}

void Scanner::describe(const Kernel& kernel, size_t after, int index) {
    if (after >= tokens.size()) return;
    std::string function = "&" + kernel.path;
    // An overloaded name needs the type.
    if (seen[kernel.path]++ > 0 || kernel.is_instance) {
        function = "static_cast<void (*)(" + kernel.parameters + ")>(" + function + ")";
    }
    std::string one_line = " static double_kernel double_kernel" + std::to_string(index) + "(\"" +
                           kernel.path + "\", " + function + ", " + kernel.bound + ", " +
                           std::to_string(index) + ");";
    for (char& c : one_line) {
        if (c == '\n') c = ' ';
    }
    insert(tokens[after].end, one_line);
}

// `extern __shared__ T name[];`: one buffer under many names. In a function it becomes a
// pointer, for compilers forget the symbol's name in templates.
void Scanner::dynamic_shared(size_t token, size_t start, size_t end, bool in_code) {
    const auto erase = [&](size_t which) {
        edits[tokens[which].begin] = {tokens[which].end, ""};
    };
    if (!in_code) {
        erase(token);
        insert(tokens[end].begin, " __asm__(\"double_dynamic_shared\")");
        return;
    }
    std::string type;
    size_t bracket = end;
    for (size_t i = start; i < end && bracket == end; ++i) {
        const std::string it = at(i);
        const bool attribute = it == "__align__" || it == "alignas" || it == "__attribute__";
        if (attribute && is(i + 1, "(")) {
            i = matching(i + 1);
        } else if (it == "[") {
            bracket = i;
        } else if (it != "extern" && it != "__shared__" && !is(i + 1, "[")) {
            type += it + " ";
        }
    }
    if (bracket == end || bracket == start) return;
    const std::string name = at(bracket - 1);
    const size_t inner = matching(bracket) + 1; // more brackets, or the end
    const std::string rest =
        text.substr(tokens[inner].begin, tokens[end].begin - tokens[inner].begin);
    std::string pointer = type + "(*" + name + ")" + rest + " = (" + type + "(*)" + rest +
                          ")double_dynamic_shared";
    for (size_t i = tokens[start].begin; i < tokens[end].begin; ++i) {
        if (text[i] == '\n') pointer += '\n';
    }
    edits[tokens[start].begin] = {tokens[end].begin, pointer};
}

// The declaration of shared memory that has this token in it.
void Scanner::shared(size_t token, size_t start, bool in_code, int index) {
    bool is_extern = false;
    size_t end = start;
    for (; end < tokens.size() && !is(end, ";"); ++end) {
        if (end < token + 2 && is(end, "extern")) is_extern = true;
        if (is(end, "{") || is(end, "(")) end = matching(end);
    }
    if (end >= tokens.size()) return;
    if (is_extern) {
        dynamic_shared(token, start, end, in_code);
        return;
    }
    if (!in_code) return;
    std::string added;
    for (size_t i = token + 1; i < end; ++i) {
        if (is(i, "(") || is(i, "[") || is(i, "{")) {
            i = matching(i);
            continue;
        }
        if (tokens[i].kind != Token::Word) continue;
        if (is(i + 1, "<")) {
            i = after_template_arguments(i + 1) - 1;
            continue;
        }
        if (!is(i + 1, "[") && !is(i + 1, ",") && !is(i + 1, ";") && !is(i + 1, "=")) continue;
        const std::string name = at(i), number = std::to_string(variables++);
        added += " static unsigned long double_serial" + number + "; double_fresh((void*)&" + name +
                 ", sizeof " + name + ", double_serial" + number + ");";
        if (index >= 0) {
            added += " static const double_extent double_extent" + number +
                     " __attribute__((section(\"double_sizes\"), used)) = {" +
                     std::to_string(index) + ", sizeof " + name + "};";
        }
    }
    insert(tokens[end].end, added);
}

// An instruction of PTX that the shim has a function for becomes a call of it: outputs, inputs.
// Returns the token after it. Others stay, for the compiler to refuse.
size_t Scanner::assembly(size_t token) {
    const size_t open = is(token + 1, "volatile") || is(token + 1, "__volatile__") ? token + 2
                                                                                   : token + 1;
    if (!is(open, "(") || matching(open) >= tokens.size()) return token;
    const size_t close = matching(open);
    std::string code, operands;
    int section = 0, count = 0;
    for (size_t i = open + 1; i < close; ++i) {
        const std::string it = at(i);
        if (it == ":" || it == "::") section += int(it.size());
        if (section == 0) code += it.substr(1, it.size() - 2);
        if (it != "(") continue;
        if (section == 1 || section == 2) {
            operands += (count++ ? ", " : "") + between(i, matching(i));
        }
        i = matching(i);
    }
    // The operands are used once each, in their order.
    std::string expected;
    for (int i = 0; i < count; ++i) expected += (i ? ", %" : " %") + std::to_string(i);
    const std::string name = code.substr(0, code.find_first_of(" ;"));
    const bool known = name == "cvt.f32.f16" || name == "cvt.rn.f16.f32" ||
                       name == "cvt.f64.f16" || name == "cvt.rn.f16.f64";
    if (!known || code != name + expected + ";") return token;
    std::string call = "double_ptx_" + name + "(" + operands + ")";
    for (char& c : call) {
        if (&c - &call[0] < long(11 + name.size()) && c == '.') c = '_';
        if (c == '\n') c = ' ';
    }
    const size_t begin = tokens[token].begin, end = tokens[close].end;
    for (size_t i = begin; i < end; ++i) {
        if (text[i] == '\n') call += '\n';
    }
    edits[begin] = {end, call};
    return close;
}

Scanned Scanner::run() {
    Scanned out{"", false, text.find("_sync") != std::string::npos};
    struct Scope {
        bool code;
        int index; // of the kernel that this is the body of, -1 in others
    };
    std::vector<Scope> scopes;
    std::map<size_t, std::pair<Kernel, int>> bodies; // by the token that ends them
    std::map<size_t, int> opened;                    // kernels' numbers by the token of `{`
    size_t start = 0, global = tokens.size();
    bool type = false;
    for (size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i].kind == Token::Directive) {
            const std::string line = at(i);
            for (const char* what : {"__global__", "__shared__", "include"}) {
                out.needs_preprocessor |= line.find(what) != std::string::npos;
            }
            if (i == start) start = i + 1;
            continue;
        }
        const std::string token = at(i);
        if (token == "__global__" && global == tokens.size()) {
            global = i;
            Kernel found;
            if (kernel(start, found)) {
                const bool described = found.is_definition && !found.is_template;
                if (described) {
                    opened[found.end] = kernels;
                    bodies[matching(found.end)] = {found, kernels++};
                } else if (found.is_instance && !found.is_definition) {
                    describe(found, found.end, kernels++);
                }
            }
        } else if (token == "__shared__") {
            const Scope scope = scopes.empty() ? Scope{false, -1} : scopes.back();
            shared(i, start, scope.code, scope.index);
        } else if (token == "asm" || token == "__asm__") {
            i = assembly(i);
        } else if (token == "class" || token == "struct" || token == "union" || token == "enum" ||
                   token == "namespace") {
            type = true;
        } else if (token == "(") {
            type = false; // a function that returns or takes such a type
        } else if (token == "{") {
            const bool linkage = i == start + 2 && is(start, "extern");
            const bool outer_code = !scopes.empty() && scopes.back().code;
            const bool local_type = outer_code && type;
            int index = outer_code ? scopes.back().index : -1;
            if (opened.count(i)) index = opened[i];
            scopes.push_back({!(type || linkage) || (outer_code && !local_type), index});
        } else if (token == "}") {
            if (!scopes.empty()) scopes.pop_back();
            const auto body = bodies.find(i);
            if (body != bodies.end()) describe(body->second.first, i, body->second.second);
        }
        if (token == ";" || token == "{" || token == "}") {
            start = i + 1;
            global = tokens.size();
            type = false;
        }
    }
    size_t done = 0;
    for (const auto& [place, edit] : edits) {
        out.text += text.substr(done, place - done) + edit.text;
        done = edit.end;
    }
    out.text += text.substr(done);
    return out;
}

} // namespace

Scanned scan(const std::string& text) { return Scanner(text).run(); }

} // namespace compiler
