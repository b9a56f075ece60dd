#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sim/io/json.hpp"

namespace weft {

/// A page larger than this is refused: it would no longer go into a ticket or a mail.
inline constexpr std::size_t kMaxReportBytes = 2'000'000;

/// `text` as an element's text or an attribute's value: no character of it is markup.
std::string html_text(std::string_view text);

/// JSON on one line that can stand inside <script type="application/json">: '<', '>', '&' and the
/// two Unicode line separators are written as \u003c and the like, so nothing ends the element.
std::string script_json(const Json& data);

/// The page of tools/report_page with its title and data filled in; `data` has {title, weft,
/// machine, files: [report_file()...]}. Throws InputError if it gets larger than kMaxReportBytes,
/// std::logic_error if `page` lacks a place for either.
std::string report_html(std::string page, const Json& data);

}  // namespace weft
