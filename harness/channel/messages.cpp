#include "harness/channel/messages.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/json/members.h"

namespace assay {

namespace trace {

// [name, category, payload, start_ns, duration_ns, thread]
Json to_json(const Entry& entry) {
  return Json::array(
      {entry.name, static_cast<int>(entry.category), entry.payload, entry.start_ns, entry.duration_ns, entry.thread});
}

void read(const JsonValue& value, Entry& to) {
  std::size_t place = 0;
  value.elements("an entry", [&](const JsonValue& part) {
    switch (place++) {
      case 0: to.name = part.string(); break;
      case 1: to.category = static_cast<Category>(part.integer<std::int64_t>()); break;
      case 2: to.payload = part.integer<std::int64_t>(); break;
      case 3: to.start_ns = part.integer<std::int64_t>(); break;
      case 4: to.duration_ns = part.integer<std::int64_t>(); break;
      case 5: to.thread = part.integer<int>(); break;
      default: break;
    }
  });
  if (place != 6) JsonValue::fail("an entry");
}

}  // namespace trace

namespace {

std::string type_of(const JsonValue& json) {
  std::string type;
  MemberReader io(json);
  io("type", type);
  return type;
}

template <typename T>
T decode_as(const JsonValue& json) {
  T message;
  read_json(json, message);
  return message;
}

template <typename... Types>
void decode_into(std::variant<Types...>& message, const JsonValue& json) {
  const std::string type = type_of(json);
  const bool known = ((type == Types::type && (message = decode_as<Types>(json), true)) || ...);
  if (!known) throw Error(fmt::format("a message of unknown type {}", in_quotes(type)));
}

}  // namespace

std::string encode(const Message& message) {
  return std::visit(
      [](const auto& value) {
        Json json = {{"type", value.type}};
        json.update(members_json(value));
        return dump_line(json);
      },
      message);
}

Message decode(std::string_view line) {
  Message message;
  use_text(line, nullptr, [&](const JsonValue& json) { decode_into(message, json); });
  return message;
}

std::optional<message::Hello> decode_hello(std::string_view line) {
  std::optional<message::Hello> hello;
  use_text(line, nullptr, [&](const JsonValue& json) {
    if (type_of(json) == message::Hello::type) hello = decode_as<message::Hello>(json);
  });
  return hello;
}

}  // namespace assay
