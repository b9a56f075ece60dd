#include "sim/input/xml_text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace weft {
namespace {

constexpr std::ptrdiff_t kMostElements = 65'536;
constexpr std::ptrdiff_t kMostAttributes = 1 << 20;

constexpr std::string_view kBlanks = " \t\r\n";

/// An opened element of a text that is no valid XML.
struct OpenTag {
  std::string name;
  std::size_t offset;
};

/// What a tag's closing "</name>" says against the elements that are open.
struct Mismatch {
  std::string name;
  std::size_t offset;
};

/// Follows the tags of a text that pugixml refused, to say which element is left open. Only as
/// exact as that needs: comments, declarations and quoted text are passed over.
class TagWalk {
 public:
  explicit TagWalk(std::string_view text) : text_{text} {
    while (!mismatch && step()) {
    }
  }

  std::vector<OpenTag> open;
  std::optional<Mismatch> mismatch;
  bool inside_tag{false};  ///< the text ends before the last tag does

 private:
  bool step() {
    const std::size_t start = text_.find('<', at_);
    if (start == std::string_view::npos) return false;
    for (const auto& [begin, end] : {std::pair{"<!--", "-->"}, {"<?", "?>"}, {"<!", ">"}}) {
      if (text_.substr(start).starts_with(begin)) return skip_to(start, end);
    }
    const std::size_t end = end_of_tag(start);
    if (end == std::string_view::npos) {
      inside_tag = true;
      return false;
    }
    at_ = end + 1;
    if (text_[start + 1] == '/') {
      close(start);
    } else if (text_[end - 1] != '/') {
      open.push_back({name_at(start + 1), start});
    }
    return true;
  }

  bool skip_to(std::size_t start, std::string_view end) {
    const std::size_t found = text_.find(end, start);
    inside_tag = found == std::string_view::npos;
    at_ = inside_tag ? text_.size() : found + end.size();
    return !inside_tag;
  }

  /// The '>' that ends a tag, quoted ones passed over.
  std::size_t end_of_tag(std::size_t start) const {
    char quote = '\0';
    for (std::size_t i = start + 1; i < text_.size(); ++i) {
      const char c = text_[i];
      if (quote != '\0') {
        if (c == quote) quote = '\0';
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '>') {
        return i;
      }
    }
    return std::string_view::npos;
  }

  std::string name_at(std::size_t start) const {
    constexpr std::size_t kLongest = 64;
    const std::size_t end = text_.find_first_of(" \t\r\n/>", start);
    return std::string(text_.substr(start, std::min(end, start + kLongest) - start));
  }

  void close(std::size_t start) {
    const std::string name = name_at(start + 2);
    if (!open.empty() && open.back().name == name) {
      open.pop_back();
    } else {
      mismatch = Mismatch{name, start};
    }
  }

  std::string_view text_;
  std::size_t at_{0};
};

/// NCCL writes ` =""` where its own input had a blank before "/>": an attribute without a name.
/// Blanks in its place keep all offsets.
std::string without_nameless_attributes(std::string text) {
  constexpr std::string_view kNameless = "=\"\"";
  for (std::size_t at = text.find(kNameless); at != std::string::npos;
       at = text.find(kNameless, at + 1)) {
    const std::size_t before = at == 0 ? at : text.find_last_not_of(kBlanks, at - 1);
    const bool after_value = before + 1 < at && (text[before] == '"' || text[before] == '\'');
    if (after_value) text.replace(at, kNameless.size(), kNameless.size(), ' ');
  }
  return text;
}

}  // namespace

XmlText::XmlText(const std::string& text, std::string file, std::int64_t max_bytes)
    : file_{std::move(file)} {
  if (std::cmp_greater(text.size(), max_bytes)) {
    throw InputError({file_}, "larger than " + std::to_string(max_bytes >> 20) +
                                  " MiB, the most that is read of an XML file");
  }
  line_starts_.push_back(0);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') line_starts_.push_back(i + 1);
  }
  check_text(text);
  const std::string readable = without_nameless_attributes(text);
  // The encoding is fixed, so that pugixml does not convert and its offsets are the text's.
  const pugi::xml_parse_result result =
      document_.load_buffer(readable.data(), readable.size(),
                            pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
  if (result.status == pugi::status_no_document_element) {
    throw InputError({file_}, "is empty: there is no XML element in it");
  }
  if (!result) refuse_malformed(text, result);
  check_bounds();
}

/// Bounds what the parser would build, before it does.
void XmlText::check_text(const std::string& text) const {
  // Each element has one '<' or two, each attribute a '='.
  if (std::count(text.begin(), text.end(), '<') > 3 * kMostElements) {
    throw InputError({file_}, "more than " + std::to_string(kMostElements) + " elements");
  }
  if (std::count(text.begin(), text.end(), '=') > kMostAttributes) {
    throw InputError({file_}, "more than " + std::to_string(kMostAttributes) + " attributes");
  }
}

void XmlText::refuse_malformed(const std::string& text,
                               const pugi::xml_parse_result& result) const {
  const auto offset =
      std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(result.offset, 0)), text.size());
  const bool at_end =
      text.find_first_not_of(kBlanks, std::min(offset + 1, text.size())) == std::string::npos;
  const TagWalk walk(text);
  const auto line = [&](const OpenTag& tag) { return std::to_string(place_of(tag.offset).line); };
  if (walk.mismatch) {
    throw InputError(
        place_of(walk.mismatch->offset),
        "not valid XML: </" + walk.mismatch->name + "> " +
            (walk.open.empty() ? "closes nothing"
                               : "stands where <" + walk.open.back().name + "> of line " +
                                     line(walk.open.back()) + " is still open"));
  }
  if (walk.inside_tag || (at_end && !walk.open.empty())) {
    const std::string where = walk.open.empty() ? std::string("before its first element does")
                                                : "inside <" + walk.open.back().name +
                                                      "> of line " + line(walk.open.back());
    throw InputError(place_of(offset),
                     "the file is cut off: it ends " + where + " (not valid XML)");
  }
  throw InputError(place_of(offset), std::string("not valid XML: ") + result.description());
}

Place XmlText::place_of(std::size_t offset) const {
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const std::size_t start = *(next - 1);
  return {file_, static_cast<int>(next - line_starts_.begin()),
          static_cast<int>(offset - start) + 1};
}

Place XmlText::place(pugi::xml_node element) const {
  const std::ptrdiff_t offset = element.offset_debug();  // of the name, after the '<'
  return offset > 0 ? place_of(static_cast<std::size_t>(offset) - 1) : Place{file_};
}

void XmlText::fail(pugi::xml_node element, const std::string& why) const {
  throw InputError(place(element), why);
}

std::string XmlText::text(pugi::xml_node element, const char* attribute) {
  return element.attribute(attribute).value();
}

std::int64_t XmlText::whole_number(pugi::xml_node element, const char* attribute,
                                   const char* written, int base) const {
  char* end = nullptr;
  errno = 0;
  const std::int64_t value = std::strtoll(written, &end, base);
  if (errno != 0 || *end != '\0') {
    fail(element, std::string("<") + element.name() + ">: " + attribute + "='" + written +
                      "' is not a whole number");
  }
  return value;
}

std::optional<std::int64_t> XmlText::integer(pugi::xml_node element, const char* attribute) const {
  const char* const written = element.attribute(attribute).value();
  if (*written == '\0') return std::nullopt;
  return whole_number(element, attribute, written, 0);
}

std::optional<std::int64_t> XmlText::pci_number(pugi::xml_node element,
                                                const char* attribute) const {
  const char* const written = element.attribute(attribute).value();
  if (*written == '\0') return std::nullopt;
  const std::string_view text = written;
  const bool is_hex =
      text.size() > 1 &&
      (text.front() == '0' || text.find_first_of("abcdefABCDEF") != std::string_view::npos);
  return whole_number(element, attribute, written, is_hex ? 16 : 0);
}

/// Walks without recursion: the depth is the user's.
void XmlText::check_bounds() const {
  constexpr int kMostLevels = 64;
  int elements = 0;
  int depth = 1;
  pugi::xml_node node = document_.first_child();
  while (node) {
    // One that only names itself (hwloc, nvidia-smi) is harmless: nothing is fetched.
    if (node.type() == pugi::node_doctype &&
        std::string_view(node.value()).find('[') != std::string_view::npos) {
      throw InputError({file_}, "defines entities (<!DOCTYPE ... [...]>), which is refused");
    }
    if (++elements > kMostElements) {
      fail(node, "more than " + std::to_string(kMostElements) + " elements");
    }
    if (depth > kMostLevels) {
      fail(node, "nested deeper than " + std::to_string(kMostLevels) + " levels");
    }
    if (node.first_child()) {
      node = node.first_child();
      ++depth;
      continue;
    }
    while (node && !node.next_sibling()) {
      node = node.parent();
      --depth;
      if (node == document_) return;
    }
    node = node.next_sibling();
  }
}

}  // namespace weft
