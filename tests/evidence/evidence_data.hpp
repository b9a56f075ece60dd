#pragma once

#include <string>

#include "sim/base/error.hpp"
#include "sim/input/evidence/evidence.hpp"
#include "sim/io/file.hpp"

namespace weft::test {

/// A captured output of tests/data/evidence.
inline std::string captured(const std::string& name) {
  return read_text_file(std::string(WEFT_SOURCE_DIR) + "/tests/data/evidence/" + name);
}

inline Evidence evidence_of(const std::string& text, const std::string& file = "f") {
  Evidence evidence;
  parse_evidence(text, file, "", evidence);
  return evidence;
}

/// A fact's value; "none" if there is no such fact.
inline std::string said(const Evidence& evidence, const std::string& subject, std::string_view what,
                        const std::string& host = "") {
  const Fact* const fact = evidence.facts.first(host, subject, what);
  return fact == nullptr ? "none" : fact->value;
}

/// Why a text is refused; "accepted" if it is not.
inline std::string refusal_of(const std::string& text) {
  try {
    evidence_of(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

/// POSIX ustar, a header and the text in blocks of 512.
inline std::string tar_of(const std::string& name, const std::string& text) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& value) {
    header.replace(at, value.size(), value);
  };
  put(0, name);
  std::string size(11, '0');
  for (std::size_t i = 0, left = text.size(); i < 11; ++i, left /= 8) {
    size[10 - i] = static_cast<char>('0' + left % 8);
  }
  put(124, size);
  put(156, "0");
  put(257, std::string("ustar\00000", 8));
  put(148, "        ");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::string digits(6, '0');
  for (std::size_t i = 0; i < 6; ++i, sum /= 8) digits[5 - i] = static_cast<char>('0' + sum % 8);
  put(148, digits + std::string("\0 ", 2));
  std::string out = header + text;
  out.resize((out.size() + 511) / 512 * 512, '\0');
  return out;
}

}  // namespace weft::test
