#pragma once

#include <string>

#include "sim/base/error.hpp"

namespace weft::test {

/// What an InputError says that a call throws; "" if it throws none.
template <class Call>
std::string complaint(const Call& call) {
  try {
    call();
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

}  // namespace weft::test
