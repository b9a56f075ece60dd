#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "replay/record/settings.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/io/file.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

struct RecordArguments {
  std::string out{"run.weft"};
  std::string buffer{"4MiB"};
  std::string salt;
  std::string topology;
  bool keep_names{false};
  std::vector<std::string> program;
};

/// The library that the program is to load: beside this program, or where it is installed.
std::string library() {
  constexpr const char* kName = "libweft-record.so";
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path installed = (here / ".." / WEFT_LIBDIR / kName).lexically_normal();
  for (const fs::path& file : {here / kName, installed}) {
    if (fs::exists(file)) return file.string();
  }
  throw InputError(fmt::format("{} is not installed: it should be {} or {}", kName,
                               (here / kName).string(), installed.string()));
}

/// Bytes of --buffer.
std::string buffer_bytes(const std::string& text) {
  const std::int64_t bytes = parse_size(text).count();
  const auto least = static_cast<std::int64_t>(record::kLeastBuffer);
  const auto most = static_cast<std::int64_t>(record::kMostBuffer);
  if (bytes < least || bytes > most) {
    throw InputError("--buffer: " + text + " is out of range: 256 KiB to 1 GiB");
  }
  return std::to_string(bytes);
}

std::string new_file(const std::string& name) {
  if (fs::exists(fs::symlink_status(name))) {
    throw InputError(name + " exists already; remove it, or name another file with -o");
  }
  const fs::path file = fs::absolute(name);  // the program may change its folder
  if (!fs::is_directory(file.parent_path())) {
    throw InputError(file.parent_path().string() + ": no such folder");
  }
  return file.string();
}

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

void preload(const std::string& file) {
  const char* const others = std::getenv("LD_PRELOAD");
  const bool is_alone = others == nullptr || *others == '\0';
  set("LD_PRELOAD", is_alone ? file : file + ':' + others);
}

/// Becomes the program: its exit code, and what stops it, are its own.
[[noreturn]] void become(const std::vector<std::string>& program) {
  std::vector<char*> words;
  words.reserve(program.size() + 1);
  for (const std::string& word : program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  throw InputError(program[0] + ": " + std::strerror(errno));
}

void run_recorded(const RecordArguments& arguments) {
  set(record::kFileVariable, new_file(arguments.out));
  set(record::kBufferVariable, buffer_bytes(arguments.buffer));
  if (!arguments.salt.empty()) set(record::kSaltVariable, arguments.salt);
  set(record::kKeepVariable, arguments.keep_names ? "1" : "0");
  if (!arguments.topology.empty()) {
    read_text_file(arguments.topology);
    set(record::kTopologyVariable, fs::absolute(arguments.topology).string());
  }
  preload(library());
  become(arguments.program);
}

}  // namespace

void add_record_command(CommandLine& line) {
  const auto arguments = std::make_shared<RecordArguments>();
  line.add("record", "Run a program and record what it does by RDMA verbs into a trace")
      .argument("program", arguments->program, "the program and its arguments, after '--'")
      .output("-o,--output", arguments->out,
              "the trace; a second process adds its number before the ending")
      .option("--buffer", arguments->buffer, "how much of a thread may wait to be written")
      .option("--salt", arguments->salt,
              "a secret that the recordings of one job share, so that what hides addresses, keys "
              "and names hides them alike; random if not given")
      .option("--topology", arguments->topology, "a topology file to keep in the trace")
      .flag("--keep-names", arguments->keep_names, "hide no addresses, keys and names")
      .example("weft record -o client.weft -- ib_write_bw -d mlx5_0 server")
      .action([arguments] { run_recorded(*arguments); });
}

}  // namespace weft
