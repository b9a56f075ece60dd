#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sim/io/keys.hpp"
#include "sim/io/yaml.hpp"

namespace weft {

/// The key that repeats an entry of a map or list: `repeat: 72` stands for 72 entries, for i = 0 to
/// 71. In each, `{...}` in its name and in all its values is replaced by the number that stands
/// there as an expression of i.
inline constexpr KeySpec kRepeatKey{
    "repeat",
    "whole number",
    "1, and braces mean nothing",
    "so many of these, i = 0, 1, ...: in the name and all values `{i/2}` becomes that number, with "
    "+ - * / % and parentheses, whole numbers only",
    {},
    1,
    4096};

/// `text` with each `{EXPRESSION}` replaced by its value. Throws InputError without a place: what
/// is wrong with the expression, or a value that is negative or beyond 2^31.
std::string fill_in(const std::string& text, std::int64_t i);

/// Calls `take` for each entry that an entry stands for, with its name ("" in a list) and body,
/// `repeat` still in it; just once where it is not repeated. Throws InputError at the entry's
/// place: also if that would make `made`, the entries until then, more than `most`.
void repeat_entry(const std::string& name, const Yaml& entry, std::size_t made, std::size_t most,
                  const std::function<void(const std::string&, const Yaml&)>& take);

}  // namespace weft
