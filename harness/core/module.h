// Backends as modules: shared objects beside the binary, loaded by workers when asked for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

// A loaded backend module (libassay-NAME.so); it stays loaded until the process ends.
class Module {
 public:
  // Loads libassay-`name`.so from the binary's folder (or $ASSAY_MODULE_PATH).
  // Throws Error that says which file is missing or which library it could not load, and the package to install.
  static Module load(std::string_view name);
  // Where the module would be loaded from; empty when it was not built or installed.
  static std::string find(std::string_view name);

  // The address of an exported C symbol; throws Error when the module lacks it.
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
