# Writes OUTPUT: a C++ source whose embedded_errors() returns the text of FILE.
file(READ ${FILE} text)
set(code "// Generated from models/expect/errors.csv by embed.cmake.\n#include \"models/expect/error_table.hpp\"\n\n")
string(APPEND code "namespace weft {\n\nstd::string_view embedded_errors() {\n  return R\"~~weft~~(${text})~~weft~~\";\n}\n\n}  // namespace weft\n")
file(WRITE ${OUTPUT} "${code}")
