#include "harness/json/value.h"

#include "harness/core/error.h"
#include "harness/json/json.h"

#include <simdjson.h>

#include <bit>

namespace assay {

namespace {

namespace dom = simdjson::dom;

constexpr std::size_t max_nesting = 66;  // 64 values in each other: simdjson counts the document, and one more

dom::element element_of(const std::array<std::byte, 16>& bytes) { return std::bit_cast<dom::element>(bytes); }
std::array<std::byte, 16> bytes_of(const dom::element& element) {
  return std::bit_cast<std::array<std::byte, 16>>(element);
}

template <typename T>
T get(const dom::element& element, const char* wanted) {
  T value;
  if (element.get(value)) JsonValue::fail(wanted);
  return value;
}

}  // namespace

bool JsonValue::is_null() const { return element_of(element_).is_null(); }
bool JsonValue::is_list() const { return element_of(element_).is_array(); }
bool JsonValue::is_object() const { return element_of(element_).is_object(); }
bool JsonValue::is_string() const { return element_of(element_).is_string(); }
bool JsonValue::is_boolean() const { return element_of(element_).is_bool(); }
bool JsonValue::is_integer() const {
  const dom::element element = element_of(element_);
  return element.is_int64() || element.is_uint64();
}

std::string_view JsonValue::string() const { return get<std::string_view>(element_of(element_), "a string"); }
bool JsonValue::boolean() const { return get<bool>(element_of(element_), "true or false"); }
double JsonValue::number() const { return get<double>(element_of(element_), "a number"); }

std::uint64_t JsonValue::unsigned_integer() const {
  return get<std::uint64_t>(element_of(element_), "an integer from 0 on");
}
std::int64_t JsonValue::signed_integer() const {
  const dom::element element = element_of(element_);
  if (element.is_uint64() && !element.is_int64()) fail("an integer of 64 bits");
  return get<std::int64_t>(element, "an integer");
}

void JsonValue::for_members(void (*use)(void* user, std::string_view name, const JsonValue& value), void* user) const {
  for (const auto& [name, element] : get<dom::object>(element_of(element_), "an object")) {
    try {
      use(user, name, JsonValue(bytes_of(element), pool_));
    } catch (Mismatch& mismatch) {
      mismatch.inside(name);
      throw;
    }
  }
}

void JsonValue::for_elements(const char* wanted, void (*use)(void* user, const JsonValue& value), void* user) const {
  for (const dom::element element : get<dom::array>(element_of(element_), wanted))
    use(user, JsonValue(bytes_of(element), pool_));
}

std::optional<JsonValue> JsonValue::find(std::string_view name) const {
  dom::element element;
  if (get<dom::object>(element_of(element_), "an object").at_key(name).get(element)) return std::nullopt;
  return JsonValue(bytes_of(element), pool_);
}

std::string JsonValue::text() const { return simdjson::minify(element_of(element_)); }

void use_text(std::string_view text, JsonPool* pool, const std::function<void(const JsonValue&)>& use) {
  dom::parser parser;
  dom::element root;
  if (parser.allocate(text.size(), max_nesting) || parser.parse(text.data(), text.size()).get(root)) {
    (void)parse_untrusted(text);  // says why
    throw Error("not JSON");      // a number beyond the range of a double, or an integer beyond 64 bits
  }
  try {
    if (root.is_null()) JsonValue::fail("an object");
    use(JsonValue(bytes_of(root), pool));
  } catch (const Mismatch& mismatch) {
    throw Error(mismatch.text());
  }
}

}  // namespace assay
