// Messages to JSON and back.
#include "harness/channel/messages.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/record/json_reader.h"

namespace assay {

namespace {

class Encoder {
 public:
  explicit Encoder(Json& json) : json_(json) {}
  template <typename T>
  void operator()(const char* name, const T& value) {
    json_[name] = value;
  }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& value) {
    if (value) (*this)(name, *value);
  }
  void operator()(const char* name, const std::map<std::string, std::string>& values) {
    json_[name] = values.empty() ? Json::object() : Json(values);
  }
  void operator()(const char* name, const Record& record) { json_[name] = record.to_json(); }
  // [[name, category, payload, start_ns, duration_ns, thread], ...]
  void operator()(const char* name, const std::vector<trace::Entry>& entries) {
    Json& rows = json_[name] = Json::array();
    for (const trace::Entry& entry : entries)
      rows.push_back(Json::array({entry.name, static_cast<int>(entry.category), entry.payload, entry.start_ns,
                                  entry.duration_ns, entry.thread}));
  }

 private:
  Json& json_;
};

class Decoder {
 public:
  explicit Decoder(const Json& json) : json_(json), reader_(json, "") {}
  std::string type() const { return reader_.text("type"); }

  void operator()(const char* name, std::string& value) { value = reader_.text(name, value); }
  void operator()(const char* name, bool& value) { value = reader_.flag(name, value); }
  void operator()(const char* name, int& value) { value = reader_.small(name, value); }
  void operator()(const char* name, std::int64_t& value) { value = reader_.integer(name, value); }
  void operator()(const char* name, std::uint64_t& value) { value = reader_.unsigned_integer(name, value); }
  void operator()(const char* name, std::vector<std::string>& values) { values = reader_.texts(name); }
  void operator()(const char* name, std::vector<double>& values) { values = reader_.reals(name); }
  void operator()(const char* name, Record& record) {
    require(name);
    record = Record::from_json(reader_.object(name));
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value) {
    if (reader_.has(name)) (*this)(name, value.emplace());
  }
  void operator()(const char* name, std::map<std::string, std::string>& values) {
    const JsonReader texts = reader_.child(name);
    for (const std::string& key : texts.names()) values[key] = texts.text(key);
  }
  // Of the kind of its default: an object or a list.
  void operator()(const char* name, Json& value) {
    if (!reader_.has(name)) return;
    const Json& found = json_.at(name);
    if (found.type() != value.type())
      throw Error(fmt::format("{}: not {}", name, value.is_array() ? "a list" : "an object"));
    value = found;
  }
  void operator()(const char* name, std::vector<trace::Entry>& entries) {
    require(name);
    Json rows = Json::array();
    (*this)(name, rows);
    for (const Json& row : rows) {
      const bool whole = row.is_array() && row.size() == 6 && row[0].is_string();
      for (std::size_t i = 1; i < 6; ++i)
        if (!whole || !row[i].is_number_integer()) throw Error(fmt::format("{}: not a list of entries", name));
      entries.push_back({row[0].get<std::string>(), static_cast<trace::Category>(row[1].get<std::uint32_t>()),
                         row[2].get<std::int64_t>(), row[3].get<std::int64_t>(), row[4].get<std::int64_t>(),
                         row[5].get<int>()});
    }
  }

 private:
  void require(const char* name) const {
    if (!reader_.has(name)) throw Error(fmt::format("{}: missing", name));
  }

  const Json& json_;
  JsonReader reader_;
};

template <typename T>
T decode_as(Decoder& decoder) {
  T value;
  T::members(value, decoder);
  return value;
}

template <typename... Types>
void decode_into(std::variant<Types...>& message, Decoder& decoder) {
  const std::string type = decoder.type();
  const bool known = ((type == Types::type && (message = decode_as<Types>(decoder), true)) || ...);
  if (!known) throw Error(fmt::format("a message of unknown type {}", in_quotes(type)));
}

}  // namespace

std::string encode(const Message& message) {
  return std::visit(
      [](const auto& value) {
        Json json = {{"type", value.type}};
        Encoder encoder(json);
        value.members(value, encoder);
        return dump_line(json);
      },
      message);
}

Message decode(std::string_view line) {
  const Json json = parse_untrusted(line);
  Decoder decoder(json);
  Message message;
  decode_into(message, decoder);
  return message;
}

std::optional<message::Hello> decode_hello(std::string_view line) {
  const Json json = parse_untrusted(line);
  Decoder decoder(json);
  if (decoder.type() != message::Hello::type) return std::nullopt;
  return decode_as<message::Hello>(decoder);
}

}  // namespace assay
