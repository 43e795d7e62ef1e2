#include "harness/comm/mpi/transport.h"

#include <mpi.h>

#include <map>
#include <optional>

namespace assay::mpi {

namespace {

constexpr int text_size = 256;

struct ControlVariable {
  int index;
  MPI_Datatype type;
  MPI_T_enum values;
};

// Open MPI registers a component's variables while it is open and removes them if it is not chosen, so the variables
// that exist after start-up show which components are in use.
std::map<std::string, ControlVariable> control_variables() {
  std::map<std::string, ControlVariable> found;
  int count = 0;
  if (MPI_T_cvar_get_num(&count) != MPI_SUCCESS) return found;
  for (int i = 0; i < count; ++i) {
    char name[text_size] = "";
    int name_size = text_size;
    int verbosity = 0;
    int bind = 0;
    int scope = 0;
    ControlVariable variable{i, MPI_DATATYPE_NULL, MPI_T_ENUM_NULL};
    if (MPI_T_cvar_get_info(i, name, &name_size, &verbosity, &variable.type, &variable.values, nullptr, nullptr, &bind,
                            &scope) == MPI_SUCCESS)
      found.emplace(name, variable);
  }
  return found;
}

// The name of an enumerated variable's current value.
std::optional<std::string> read_word(const ControlVariable& variable) {
  if (variable.values == MPI_T_ENUM_NULL || variable.type != MPI_INT) return std::nullopt;
  MPI_T_cvar_handle handle;
  int elements = 0;
  if (MPI_T_cvar_handle_alloc(variable.index, nullptr, &handle, &elements) != MPI_SUCCESS) return std::nullopt;
  int value = 0;
  const bool read = elements == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS;
  MPI_T_cvar_handle_free(&handle);
  int words = 0;
  char enum_name[text_size] = "";
  int enum_name_size = text_size;
  if (!read || MPI_T_enum_get_info(variable.values, &words, enum_name, &enum_name_size) != MPI_SUCCESS)
    return std::nullopt;
  for (int i = 0; i < words; ++i) {
    int candidate = 0;
    char word[text_size] = "";
    int word_size = text_size;
    if (MPI_T_enum_get_item(variable.values, i, &candidate, word, &word_size) == MPI_SUCCESS && candidate == value)
      return std::string(word);
  }
  return std::nullopt;
}

}  // namespace

std::string transport(int nodes) {
  int provided = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return {};
  const auto variables = control_variables();
  const auto open = [&](const char* component) { return variables.count(std::string(component) + "_eager_limit") > 0; };

  std::string words;
  if (variables.count("pml_ucx_priority")) {
    words = "ucx";
  } else if (variables.count("pml_ob1_priority")) {
    words = "ob1";
    // Within a node shared memory outranks every other transport; between nodes it is not used.
    const char* shared = open("btl_vader") ? "vader" : open("btl_sm") ? "sm" : nullptr;
    if (shared) {
      words += std::string(", ") + shared;
      const auto copy = variables.find(std::string("btl_") + shared + "_single_copy_mechanism");
      if (copy != variables.end())
        if (const auto word = read_word(copy->second)) words += " (" + *word + ")";
    }
    if (!shared || nodes > 1)
      for (const char* wire : {"openib", "uct", "ofi", "usnic", "tcp"})
        if (open((std::string("btl_") + wire).c_str())) words += std::string(", ") + wire;
  } else if (variables.count("pml_cm_priority")) {
    words = "cm";
  }
  MPI_T_finalize();
  return words;
}

}  // namespace assay::mpi
