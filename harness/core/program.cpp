#include "harness/core/program.h"

#include "harness/core/error.h"

namespace assay {

namespace fs = std::filesystem;

namespace {

fs::path running_file() {
  std::error_code error;
  fs::path file = fs::read_symlink("/proc/self/exe", error);
  if (error) throw Error(fmt::format("cannot find this program's own file: {}", error.message()));
  return file;
}

// A package's launcher starts the program through a dynamic loader that it names, and the kernel runs the loader.
bool launched(const fs::path& running) { return running.filename().string().starts_with("ld-"); }

}  // namespace

fs::path program_file() {
  fs::path running = running_file();
  return launched(running) ? fs::path(program_invocation_name) : running;
}

fs::path program_command() {
  fs::path running = running_file();
  return launched(running) ? program_file().parent_path().parent_path() / "assay" : running;
}

}  // namespace assay
