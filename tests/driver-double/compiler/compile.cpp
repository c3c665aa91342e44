#include "compile.hpp"
#include "loaded.hpp"
#include "scan.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <mutex>
#include <spawn.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

// The text of shim.h and shim_math.h, which the build embeds.
extern "C" const char double_shim_begin[], double_shim_end[];

namespace compiler {
namespace {

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

bool write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    return bool(file.flush());
}

// A folder that is gone afterwards.
struct Folder {
    std::string path;
    std::vector<std::string> files;

    Folder() {
        const char* base = std::getenv("TMPDIR");
        std::string pattern =
            std::string(base && *base ? base : "/tmp") + "/driver-double-XXXXXX";
        if (mkdtemp(&pattern[0])) path = pattern;
    }
    ~Folder() {
        for (const std::string& file : files) unlink(file.c_str());
        for (size_t i = folders.size(); i-- > 0;) rmdir(folders[i].c_str());
        if (!path.empty()) rmdir(path.c_str());
    }
    std::string file(const std::string& name) {
        for (size_t slash = name.find('/'); slash != std::string::npos;
             slash = name.find('/', slash + 1)) {
            const std::string folder = path + "/" + name.substr(0, slash);
            if (mkdir(folder.c_str(), 0700) == 0) folders.push_back(folder);
        }
        files.push_back(path + "/" + name);
        return files.back();
    }

private:
    std::vector<std::string> folders;
};

// Runs a program; both its outputs go to a file. Its exit status, -1 if it does not run.
int run(const std::vector<std::string>& words, const std::string& output) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::vector<char*> environment;
    for (char** it = environ; *it; ++it) {
        const bool language = std::strncmp(*it, "LC_", 3) == 0 || std::strncmp(*it, "LANG", 4) == 0;
        // The compiler is not to be run with libraries that were put before a test's own.
        const bool preload = std::strncmp(*it, "LD_PRELOAD=", 11) == 0;
        if (!language && !preload) environment.push_back(*it);
    }
    environment.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child;
    const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(),
                                   environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return -1;
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return 0; // reaped by the program: what it made will tell
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

struct Tool {
    std::vector<std::string> words; // empty if there is none
    std::string identity;
};

const Tool& tool() {
    static Tool found;
    static std::once_flag once;
    std::call_once(once, [] {
        std::vector<std::string> candidates = {"c++", "g++", "clang++"};
        const char* chosen = std::getenv("CXX");
        if (chosen && *chosen) candidates = {chosen};
        Folder folder;
        const std::string output = folder.file("version");
        for (const std::string& candidate : candidates) {
            std::istringstream split(candidate);
            std::vector<std::string> words;
            for (std::string word; split >> word;) words.push_back(word);
            std::vector<std::string> ask = words;
            ask.push_back("--version");
            if (run(ask, output) == 0) {
                found = {words, read_file(output)};
                return;
            }
        }
    });
    return found;
}

std::vector<std::string> command(const Program& program) {
    std::vector<std::string> words = tool().words;
    for (const char* word : {"-x", "c++", "-nostdinc", "-fno-diagnostics-show-caret",
                             "-fno-exceptions"}) {
        words.push_back(word);
    }
    const std::vector<const char*> cuda = {"-D__CUDACC__", "-D__CUDACC_RTC__"};
    const std::vector<const char*> hip = {"-D__HIP__", "-D__HIPCC__", "-D__HIPCC_RTC__",
                                          "-D__HIP_DEVICE_COMPILE__", "-D__HIP_PLATFORM_AMD__"};
    for (const char* word : program.hip ? hip : cuda) words.push_back(word);
    words.push_back("-DDOUBLE_WARP=" + std::to_string(program.warp));
    words.insert(words.end(), program.options.begin(), program.options.end());
    return words;
}

const char* const CODE_OPTIONS[] = {
    "-O1", "-pipe", "-fPIC", "-shared", "-nostdlib", "-fno-semantic-interposition", "-fno-rtti",
    "-fno-threadsafe-statics", "-fno-strict-aliasing", "-fwrapv", "-ffp-contract=off",
    "-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-fstack-clash-protection",
    "-Wl,-Bsymbolic",
    "-Wl,--build-id=none"};

std::string literal(const std::string& text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + "\"";
}

std::string key_of(const std::vector<std::string>& words, const std::string& unit,
                   const Program& program) {
    std::string all = tool().identity;
    for (const std::string& word : words) all += '\0' + word;
    all += '\0' + unit;
    for (const auto& [name, text] : program.headers) all += '\0' + name + '\0' + text;
    uint64_t one = 0xcbf29ce484222325u, two = 0x9e3779b97f4a7c15u;
    for (unsigned char byte : all) {
        one = (one ^ byte) * 0x100000001b3u;
        two = (two + byte) * 0xff51afd7ed558ccdu;
        two ^= two >> 29;
    }
    char key[40];
    std::snprintf(key, sizeof key, "%016llx%016llx", (unsigned long long)one,
                  (unsigned long long)two);
    return key;
}

// Readers find whole files only.
void keep(const std::string& folder, const std::string& path, const std::string& library) {
    mkdir(folder.c_str(), 0700);
    const std::string fresh = path + "." + std::to_string(getpid()) + "-" +
                              std::to_string(uintptr_t(&library) >> 4);
    if (!write_file(fresh, library) || rename(fresh.c_str(), path.c_str()) != 0) {
        unlink(fresh.c_str());
    }
}

} // namespace

Compiled compile(const Program& program) {
    if (tool().words.empty()) return {false, "no C++ compiler runs: set CXX", ""};
    Folder folder;
    if (folder.path.empty()) return {false, "no folder for temporary files: set TMPDIR", ""};
    std::vector<std::string> words = command(program);
    std::string identity; // with a name that does not depend on the folder
    if (!program.headers.empty()) {
        for (const auto& [name, text] : program.headers) write_file(folder.file(name), text);
        words.push_back("-I" + folder.path);
    }
    if (program.hip) { // comes with the compiler
        folder.file("hip/hip_runtime.h");
        write_file(folder.files.back(), "");
        words.push_back("-idirafter" + folder.path);
    }
    const std::string source = folder.file("source.cpp"), object = folder.file("object.so"),
                      log = folder.file("log");
    const std::string line = "#line 1 " + literal(program.name) + "\n";
    Scanned scanned = scan(program.text);
    if (scanned.needs_preprocessor) {
        write_file(source, line + program.text);
        std::vector<std::string> expand = words;
        const std::string expanded = folder.file("expanded.cpp");
        // In HIP these are macros, for which programs ask; the shim comes later.
        for (const char* word : {"__global__", "__device__", "__host__", "__shared__",
                                 "__constant__"}) {
            if (program.hip) expand.push_back("-D" + std::string(word) + "=" + word);
        }
        for (const std::string& word : {std::string("-E"), source, std::string("-o"), expanded}) {
            expand.push_back(word);
        }
        if (run(expand, log) != 0) return {false, read_file(log), ""};
        // Markers of lines name files of the folder, which is another one each time.
        std::string text = read_file(expanded);
        const std::string prefix = folder.path + "/";
        for (size_t i = text.find(prefix); i != std::string::npos; i = text.find(prefix, i)) {
            text.erase(i, prefix.size());
        }
        scanned = scan(text);
    }
    // What the compiler has to say of the shim is nothing to the program.
    std::string unit = "# 1 \"<built-in>\" 3\n" + std::string(double_shim_begin, double_shim_end) +
                       "\n# 1 " + literal(program.name) + "\n" + scanned.text;
    unit += "\n#line 1 \"name expression\"\n";
    for (size_t i = 0; i < program.name_expressions.size(); ++i) {
        const std::string& expression = program.name_expressions[i];
        unit += "static double_kernel double_name" + std::to_string(i) + "(" +
                literal(expression) + ", (" + expression + "), 0, -1);\n";
    }
    const bool clang = tool().identity.find("clang") != std::string::npos;
    words.insert(words.end(), std::begin(CODE_OPTIONS), std::end(CODE_OPTIONS));
    if (!clang) words.push_back("-fno-gnu-unique");

    std::string kept;
    const char* cache = std::getenv("DOUBLE_CACHE");
    if (cache && *cache) {
        std::vector<std::string> stable;
        for (const std::string& word : words) {
            if (word.find(folder.path) == std::string::npos) stable.push_back(word);
        }
        kept = std::string(cache) + "/" + key_of(stable, unit, program) + ".so";
        const std::string library = read_file(kept);
        if (!library.empty()) return {true, "", library};
    }
    write_file(source, unit);
    for (const std::string& word :
         {source, std::string("-o"), object, std::string("-lm"), std::string("-lc")}) {
        words.push_back(word);
    }
    const int status = run(words, log);
    Compiled result = {status == 0, read_file(log), read_file(object)};
    if (result.library.empty()) result.ok = false;
    // Warnings are not kept, and so what has some is not either.
    if (result.ok && result.log.empty() && !kept.empty()) keep(cache, kept, result.library);
    return result;
}

std::vector<std::string> lowered(const std::string& library,
                                 const std::vector<std::string>& name_expressions) {
    std::vector<std::string> names(name_expressions.size());
    std::string why;
    const auto loaded = Library::load(library, why);
    if (!loaded) return names;
    for (size_t i = 0; i < names.size(); ++i) {
        for (const Entry* entry = loaded->module->entries; entry; entry = entry->next) {
            if (entry->index < 0 && name_expressions[i] == entry->name) {
                names[i] = loaded->symbol(*entry);
            }
        }
    }
    return names;
}

} // namespace compiler
