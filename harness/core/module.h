// Backends as modules: shared objects next to the binary, loaded by workers on demand.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// A loaded backend module (libassay-NAME.so); it stays loaded until the process ends.
class Module {
 public:
  // Loads libassay-`name`.so from the binary's folder (or $ASSAY_MODULE_PATH).
  // Throws Error naming the missing file, or the library that could not be loaded and the package to install.
  static Module load(std::string_view name);
  // Where the module would be loaded from; empty if it was not built or installed.
  static std::string find(std::string_view name);

  // The address of an exported C symbol; throws Error if the module lacks it.
  void* symbol(const char* name) const;

  template <typename F>
  F function(const char* name) const {
    return reinterpret_cast<F>(symbol(name));
  }

 private:
  Module(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}

  std::string path_;
  void* handle_;
};

}  // namespace assay
