#include "sim/report/report_page.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "sim/base/error.hpp"

namespace weft {
namespace {

// As tools/report_page/index.html has them.
constexpr std::string_view kTitle = "<title>weft report</title>";
constexpr std::string_view kData = R"(<script id="data" type="application/json">null</script>)";

struct Escape {
  std::string_view from;
  std::string_view to;
};

/// Each of `escapes` that begins at a place of `text` replaced, the first that fits.
template <std::size_t n>
std::string escaped(std::string_view text, const Escape (&escapes)[n]) {
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  while (!text.empty()) {
    std::string_view piece = text.substr(0, 1);
    std::string_view instead = piece;
    for (const Escape& escape : escapes) {
      if (!text.starts_with(escape.from)) continue;
      piece = escape.from;
      instead = escape.to;
      break;
    }
    out += instead;
    text.remove_prefix(piece.size());
  }
  return out;
}

void fill(std::string& page, std::string_view place, const std::string& with) {
  const std::size_t at = page.find(place);
  if (at == std::string::npos || page.find(place, at + 1) != std::string::npos) {
    throw std::logic_error("the report's page must have one " + std::string(place));
  }
  page.replace(at, place.size(), with);
}

}  // namespace

std::string html_text(std::string_view text) {
  static constexpr Escape kEscapes[] = {
      {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}};
  return escaped(text, kEscapes);
}

std::string script_json(const Json& data) {
  // In JSON all of these stand in texts alone, where an escape means the same.
  static constexpr Escape kEscapes[] = {{"<", "\\u003c"},
                                        {">", "\\u003e"},
                                        {"&", "\\u0026"},
                                        {"\u2028", "\\u2028"},
                                        {"\u2029", "\\u2029"}};
  return escaped(data.dump_line(), kEscapes);
}

std::string report_html(std::string page, const Json& data) {
  // Data last: they may hold any text, the places' too.
  fill(page, kTitle, "<title>" + html_text(data.at("title").as_string()) + "</title>");
  fill(page, kData,
       R"(<script id="data" type="application/json">)" + script_json(data) + "</script>");
  if (page.size() > kMaxReportBytes) {
    throw InputError(
        fmt::format("the report would have {:.1f} MB, at most {} are written: give fewer results, "
                    "or of a table "
                    "fewer rows",
                    static_cast<double>(page.size()) / 1e6, kMaxReportBytes / 1'000'000));
  }
  return page;
}

}  // namespace weft
