#include "sim/io/yaml.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "sim/base/random.hpp"
#include "sim/io/file.hpp"
#include "sim/io/utf8.hpp"

namespace weft {
namespace {

/// Any but tab and line ends.
bool is_control(char c) { return (c >= 0 && c < 0x20 && c != '\t' && c != '\n' && c != '\r'); }

/// Throws InputError at the first byte that no text file holds: yaml-cpp takes byte 4 for the end
/// of the file, and passes on what is not UTF-8. The column counts bytes.
void require_text(std::string_view text, const std::string& file) {
  Place place{file, 1, 1};
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) throw InputError(place, "not UTF-8 text");
    if (is_control(text[i])) throw InputError(place, "control characters are not accepted");
    place.column = text[i] == '\n' ? 1 : place.column + static_cast<int>(length);
    place.line += text[i] == '\n' ? 1 : 0;
    i += length;
  }
}

}  // namespace

/// Builds the tree from yaml-cpp's events: its own node tree keeps repeated keys in silence, gives
/// numbers we do not want ("010" is 8) and forgets where keys stand.
class YamlBuilder : public YAML::EventHandler {
 public:
  explicit YamlBuilder(std::string file) : file_{std::move(file)} {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (has_root_) refuse(mark, "a second document begins here; one is taken");
    // yaml-cpp 0.7 leaves a ',' outside of a list where it is, and would begin a document there for
    // ever.
    if (document_ == mark.pos) refuse(mark, "not valid YAML: what stands here begins nothing");
    document_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (open_.empty() && anchor == 0) return;  // nothing between the document's marks
    OnScalar(mark, "", anchor, "");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases are not accepted");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check(mark, tag, anchor);
    if (std::any_of(value.begin(), value.end(), is_control)) {
      refuse(mark, "control characters are not accepted");
    }
    if (!open_.empty() && open_.back().node.is_map() && !open_.back().has_key) {
      take_key(mark, value);
      return;
    }
    Yaml node = make(mark, Yaml::Kind::kScalar);
    node.text_ = value;
    attach(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(mark, tag, anchor, Yaml::Kind::kList);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(mark, tag, anchor, Yaml::Kind::kMap);
  }
  void OnMapEnd() override { end(); }

  bool has_root() const { return has_root_; }
  Yaml take_root() { return std::move(root_); }

 private:
  struct Open {
    Yaml node;
    bool has_key{false};
    std::set<std::string> keys;  // a linear search would be quadratic on a hostile file
    std::string key;
    Place key_place;
  };
  static constexpr std::size_t kMaxDepth = 64;
  static constexpr std::size_t kMaxNodes = 1'000'000;
  static constexpr std::size_t kMaxKey = 256;
  static constexpr std::size_t kMaxPaths = 128U << 20;  // each node keeps its path

  Place place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }
  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& why) const {
    throw InputError(place(mark), why);
  }

  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) refuse(mark, "anchors are not accepted");
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "tags are not accepted");
    if (++nodes_ > kMaxNodes) refuse(mark, "more than a million nodes");
  }

  Yaml make(const YAML::Mark& mark, Yaml::Kind kind) {
    Yaml node;
    node.kind_ = kind;
    node.place_ = place(mark);
    if (open_.empty()) return node;
    const Open& parent = open_.back();
    if (parent.node.is_map()) {
      node.place_ = parent.key_place;
      node.path_ = parent.node.path_ + (parent.node.path_.empty() ? "" : ".") + parent.key;
    } else {
      node.path_ = parent.node.path_ + "[" + std::to_string(parent.node.items_.size()) + "]";
    }
    paths_ += node.path_.size();
    if (paths_ > kMaxPaths) refuse(mark, "the paths of its nodes take more than 128 MiB");
    return node;
  }

  void take_key(const YAML::Mark& mark, const std::string& key) {
    if (key.size() > kMaxKey) refuse(mark, "a key longer than 256 bytes");
    Open& map = open_.back();
    map.key_place = place(mark);
    map.key = key;
    map.has_key = true;
    const std::string path = map.node.path_ + (map.node.path_.empty() ? "" : ".") + key;
    if (!map.keys.insert(key).second) refuse(mark, path + ": key given twice");
  }

  void begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             Yaml::Kind kind) {
    check(mark, tag, anchor);
    if (!open_.empty() && open_.back().node.is_map() && !open_.back().has_key) {
      refuse(mark, "a key must be a plain word");
    }
    if (open_.size() >= kMaxDepth) refuse(mark, "nested deeper than 64 levels");
    open_.push_back(Open{make(mark, kind), false, {}, {}, {}});
  }

  void end() {
    Yaml node = std::move(open_.back().node);
    open_.pop_back();
    attach(std::move(node));
  }

  void attach(Yaml node) {
    if (open_.empty()) {
      root_ = std::move(node);
      has_root_ = true;
      return;
    }
    Open& parent = open_.back();
    if (parent.node.is_map()) {
      parent.node.entries_.emplace_back(std::move(parent.key), std::move(node));
      parent.has_key = false;
    } else {
      parent.node.items_.push_back(std::move(node));
    }
  }

  std::string file_;
  std::vector<Open> open_;
  Yaml root_;
  bool has_root_{false};
  int document_{-1};  // where the last one began
  std::size_t nodes_{0};
  std::size_t paths_{0};
};

Yaml Yaml::load(const std::string& file) { return parse(read_text_file(file), file); }

Yaml Yaml::parse(const std::string& text, const std::string& file) {
  require_text(text, file);
  YamlBuilder builder(file);
  try {
    // The end mark: without it yaml-cpp lets the end of the text close an open quote in silence.
    std::istringstream in(text + "\n...\n");
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    if (e.msg == YAML::ErrorMsg::DOC_IN_SCALAR &&
        e.mark.line > std::count(text.begin(), text.end(), '\n')) {
      throw InputError(file + ": not valid YAML: a quote is never closed");
    }
    throw InputError(Place{file, e.mark.line + 1, e.mark.column + 1}, "not valid YAML: " + e.msg);
  }
  if (!builder.has_root()) throw InputError(file + ": is empty");
  return builder.take_root();
}

void Yaml::fail(const std::string& why) const {
  throw InputError(place_, path_.empty() ? why : path_ + ": " + why);
}

Yaml Yaml::rewritten(const std::function<std::string(const std::string&)>& text) const {
  Yaml out = *this;
  if (is_scalar()) {
    try {
      out.text_ = text(text_);
    } catch (const InputError& error) {
      fail(error.what());
    }
  }
  for (Yaml& item : out.items_) item = item.rewritten(text);
  for (auto& [key, value] : out.entries_) value = value.rewritten(text);
  return out;
}

std::uint64_t Yaml::digest() const {
  std::string all;
  const auto add = [&](const std::string& text) {
    all += std::to_string(text.size()) + ":" + text;
  };
  const std::function<void(const Yaml&)> add_node = [&](const Yaml& node) {
    if (node.is_scalar()) {
      add(node.text_);
    } else {
      all += node.is_map() ? '{' : '[';
    }
    for (const Yaml& item : node.items_) add_node(item);
    for (const auto& [key, value] : node.entries_) {
      add(key);
      add_node(value);
    }
    if (!node.is_scalar()) all += node.is_map() ? '}' : ']';
  };
  add_node(*this);
  return fnv1a(all);
}

const std::string& Yaml::text() const {
  if (!is_scalar())
    fail(is_map() ? "expected a value, found a map" : "expected a value, found a list");
  return text_;
}

double Yaml::quantity(Unit unit) const {
  try {
    return parse_quantity(text(), unit);
  } catch (const InputError& e) {
    if (!is_scalar()) throw;
    fail(e.what());
  }
}

std::int64_t Yaml::integer(std::int64_t min, std::int64_t max) const {
  const std::string& s = text();
  std::int64_t n{};
  const auto [rest, error] = std::from_chars(s.data(), s.data() + s.size(), n);
  if (error != std::errc{} || rest != s.data() + s.size() || n < min || n > max) {
    fail("'" + s + "' is not a whole number from " + std::to_string(min) + " to " +
         std::to_string(max));
  }
  return n;
}

Bytes Yaml::size() const {
  try {
    return parse_size(text());
  } catch (const InputError& e) {
    if (!is_scalar()) throw;
    fail(e.what());
  }
}

const std::vector<Yaml>& Yaml::items() const {
  if (!is_list()) fail("expected a list");
  return items_;
}

const std::vector<Yaml::Entry>& Yaml::entries() const {
  if (!is_map()) fail("expected a map of keys and values");
  return entries_;
}

void Yaml::allow_keys(std::span<const std::string_view> known) const {
  for (const auto& [key, value] : entries()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const std::vector<std::string> names{known.begin(), known.end()};
      value.fail("unknown key" + did_you_mean(key, names) +
                 "; allowed here: " + known_names(names, 30));
    }
  }
}

void Yaml::allow_keys(std::initializer_list<std::string_view> known) const {
  allow_keys(std::span<const std::string_view>{known.begin(), known.size()});
}

const Yaml* Yaml::find(std::string_view key) const {
  for (const auto& [name, value] : entries()) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Yaml& Yaml::require(std::string_view key) const {
  if (const Yaml* node = find(key)) return *node;
  fail("missing key '" + std::string(key) + "'");
}

}  // namespace weft
