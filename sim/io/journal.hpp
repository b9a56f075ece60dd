#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// A file of text records that survives its writer: a record is kept once append() has returned,
/// whatever then ends the process. (Not the loss of power: nothing waits for the disk.) One process
/// at a time has it open.
class Journal {
 public:
  /// Opens the file, or makes it, and reads the records in it. What is half-written at the end, by
  /// a process that was ended, is cut off. Throws InputError: cannot be opened, open elsewhere,
  /// some other kind of file, a link, a FIFO or a device (which
  /// stay as they are), too large.
  explicit Journal(const std::string& path);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  /// The records found, in the order they were appended.
  const std::vector<std::string>& records() const { return records_; }
  /// Throws InputError if the file cannot be written.
  void append(std::string_view record);
  /// Takes the file away.
  void remove();

 private:
  void open();
  void read();
  void write(std::string_view text);

  std::string path_;
  int file_{-1};
  std::vector<std::string> records_;
};

}  // namespace weft
