# Writes OUTPUT: what commit of SOURCE_DIR is built; "unknown" where that is no clone (a tarball, say).
# The file is written anew only when the answer changes, so nothing else is compiled again.
set(commit unknown)
find_package(Git QUIET)
if(Git_FOUND)
  set(ENV{GIT_OPTIONAL_LOCKS} 0)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --show-toplevel WORKING_DIRECTORY ${SOURCE_DIR}
    RESULT_VARIABLE failed OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  # A tarball may lie inside of someone else's clone.
  file(REAL_PATH "${SOURCE_DIR}" here)
  if(NOT failed AND top STREQUAL here)
    execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12 --exclude=*
      WORKING_DIRECTORY ${SOURCE_DIR} RESULT_VARIABLE failed OUTPUT_VARIABLE described
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT failed)
      set(commit ${described})
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#include "sim/base/version.hpp"

namespace weft {

std::string_view weft_commit() { return "@commit@"; }

}  // namespace weft
]] @ONLY)
