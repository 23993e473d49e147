// Prepared rows in a file, mapped into memory: a pool may be larger than the memory.
//
// A page of a mapped file that is no longer there when it is read (another process cut the file, or the disk failed)
// raises SIGBUS, which ends a process. While files are mapped, a handler of that signal puts zeros in place of what is
// missing of them and notes it; every other SIGBUS goes to the handler that was there before. Searches then run on to
// their next check, which throws: nothing that was computed from zeros is returned. The handler is the one piece of
// state that the process shares, as signals are; it is installed with the first file and removed with the last.
// What this cannot notice is a file that keeps its size and changes its content while it is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace fedsel {

// The file of a pool is not what it was.
struct RowsLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class MappedRows {
 public:
  // Maps `values` integers that start `offset` bytes into the file, a multiple of 64. Throws RowsLost where the file
  // cannot be mapped or does not end there.
  MappedRows(const std::string& path, std::size_t offset, std::size_t values);
  ~MappedRows();
  MappedRows(const MappedRows&) = delete;
  MappedRows& operator=(const MappedRows&) = delete;

  const std::int32_t* data() const { return data_; }

  // Throws RowsLost if a page was missing, or the file has another size now.
  void check() const;

 private:
  std::string path_;
  std::size_t bytes_;  // of the whole file
  int file_ = -1;
  char* begin_ = nullptr;
  std::size_t slot_ = 0;
  const std::int32_t* data_ = nullptr;
};

}  // namespace fedsel
