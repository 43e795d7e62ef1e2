// The command of a package (`./dev package`): starts bin/assay beside it through a dynamic loader, with the libraries
// that the package brings. It is linked statically, so that it runs on any system.
// A C library older than the one the package was built with is replaced by the package's. A newer one is used, because
// libraries of the host that Assay loads (MPI, the GPU's driver, cuBLAS, cuDNN, NCCL) may need it.
#include <gnu/libc-version.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr const char* host_loader = "/lib64/ld-linux-x86-64.so.2";
constexpr const char* host_libraries[] = {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"};

struct Version {
  int major = 0, minor = 0;
  auto operator<=>(const Version&) const = default;
};

Version parse(const char* text) {
  Version version;
  return std::sscanf(text, "%d.%d", &version.major, &version.minor) == 2 ? version : Version{};
}

// The version of a glibc, from the line that it prints when it is run: "GNU C Library (...) stable release
// version 2.36."
Version library_version(const char* path) {
  constexpr std::string_view marker = "release version ";
  std::string text;
  if (std::FILE* const file = std::fopen(path, "rb")) {
    char block[65536];
    while (const std::size_t got = std::fread(block, 1, sizeof block, file)) text.append(block, got);
    std::fclose(file);
  }
  const std::size_t at = text.find(marker);
  return at == text.npos ? Version{} : parse(text.c_str() + at + marker.size());
}

bool host_is_recent() {
  if (access(host_loader, X_OK) != 0) return false;
  const Version needed = parse(gnu_get_libc_version());
  for (const char* library : host_libraries)
    if (const Version found = library_version(library); found != Version{}) return found >= needed;
  return false;
}

}  // namespace

int main(int, char** argv) {
  char self[PATH_MAX] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) {
    std::fprintf(stderr, "assay: cannot find its own folder: %s (is /proc mounted?)\n", std::strerror(errno));
    return 4;
  }
  const std::string root(self, static_cast<std::size_t>(std::strrchr(self, '/') - self));
  const bool recent = host_is_recent();
  const std::string loader = recent ? host_loader : root + "/lib/glibc/ld-linux-x86-64.so.2";
  std::string libraries = (recent ? "" : root + "/lib/glibc:") + root + "/lib";
  // A gate of root's loads nothing that others name; this program, linked statically, is the first that can see to it.
  if (geteuid() == 0 && argv[1] && std::string_view(argv[1]) == "gate") {
    for (char** entry = environ; *entry;) {
      const std::string name(*entry, std::strcspn(*entry, "="));
      if (!(name.starts_with("LD_") || name == "GLIBC_TUNABLES") || unsetenv(name.c_str()) != 0) ++entry;
    }
  }
  if (const char* more = std::getenv("LD_LIBRARY_PATH"); more && *more) libraries += ":" + std::string(more);
  const std::string program = root + "/bin/assay";
  std::vector<const char*> words = {loader.c_str(),   "--argv0",         program.c_str(),
                                    "--library-path", libraries.c_str(), program.c_str()};
  while (*++argv) words.push_back(*argv);
  words.push_back(nullptr);
  execv(words[0], const_cast<char* const*>(words.data()));
  std::fprintf(stderr, "assay: cannot start %s: %s\n", words[0], std::strerror(errno));
  return 4;
}
