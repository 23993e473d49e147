#include "mapped_rows.hpp"

#if defined(_WIN32)

namespace fedsel {

MappedRows::MappedRows(const std::string& path, std::size_t, std::size_t) {
  throw RowsLost(path + ": prepared pools cannot be mapped on this system");
}
MappedRows::~MappedRows() = default;
void MappedRows::check() const {}

}  // namespace fedsel

#else

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace fedsel {
namespace {

// What the handler may read: fixed in place, and atomic.
struct Slot {
  std::atomic<char*> begin{nullptr};
  std::atomic<std::size_t> bytes{0};
  std::atomic<bool> cut{false};
};

constexpr std::size_t kMostFiles = 64;
std::array<Slot, kMostFiles> slots;
std::mutex guard;  // of what follows, and of taking slots
std::size_t taken = 0;
struct sigaction before;

void on_bus_error(int signal, siginfo_t* info, void* context) {
  char* const at = static_cast<char*>(info->si_addr);
  for (Slot& slot : slots) {
    char* const begin = slot.begin.load();
    const std::size_t bytes = slot.bytes.load();
    if (begin == nullptr || at < begin || at >= begin + bytes) continue;
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t first = static_cast<std::size_t>(at - begin) / page * page;
    slot.cut.store(true);
    if (mmap(begin + first, bytes - first, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
      return;
  }
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
    before.sa_sigaction(signal, info, context);
  } else if ((before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    struct sigaction nothing{};
    nothing.sa_handler = SIG_DFL;
    sigaction(SIGBUS, &nothing, nullptr);
    raise(signal);
  }
}

std::size_t take_slot(char* begin, std::size_t bytes) {
  const std::lock_guard lock(guard);
  for (std::size_t i = 0; i < kMostFiles; ++i) {
    if (slots[i].begin.load() != nullptr) continue;
    if (taken++ == 0) {
      struct sigaction ours{};
      ours.sa_sigaction = on_bus_error;
      ours.sa_flags = SA_SIGINFO | SA_NODEFER;
      sigemptyset(&ours.sa_mask);
      sigaction(SIGBUS, &ours, &before);
    }
    slots[i].cut.store(false);
    slots[i].bytes.store(bytes);
    slots[i].begin.store(begin);
    return i;
  }
  return kMostFiles;
}

void give_back(std::size_t slot) {
  const std::lock_guard lock(guard);
  slots[slot].begin.store(nullptr);
  if (--taken > 0) return;
  struct sigaction now{};
  sigaction(SIGBUS, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_bus_error) sigaction(SIGBUS, &before, nullptr);
}

}  // namespace

MappedRows::MappedRows(const std::string& path, std::size_t offset, std::size_t values)
    : path_(path), bytes_(offset + values * sizeof(std::int32_t)) {
  if (offset % 64 != 0 || values == 0) throw RowsLost(path + ": rows must start at a multiple of 64 bytes");
  file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) throw RowsLost(path + ": cannot be read: " + std::strerror(errno));
  try {
    check();
    void* mapped = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file_, 0);
    if (mapped == MAP_FAILED) throw RowsLost(path + ": cannot be mapped: " + std::strerror(errno));
    begin_ = static_cast<char*>(mapped);
    slot_ = take_slot(begin_, bytes_);
    if (slot_ == kMostFiles) {
      munmap(begin_, bytes_);
      throw RowsLost(path + ": at most " + std::to_string(kMostFiles) + " prepared pools can be open at a time");
    }
  } catch (...) {
    close(file_);
    throw;
  }
  data_ = reinterpret_cast<const std::int32_t*>(begin_ + offset);
}

MappedRows::~MappedRows() {
  give_back(slot_);
  munmap(begin_, bytes_);
  close(file_);
}

void MappedRows::check() const {
  struct stat status{};
  if (fstat(file_, &status) != 0) throw RowsLost(path_ + ": cannot be read: " + std::strerror(errno));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size != bytes_)
    throw RowsLost(path_ + ": expected " + std::to_string(bytes_) + " bytes, got " + std::to_string(size) + " (cut?)");
  if (begin_ != nullptr && slots[slot_].cut.load())
    throw RowsLost(path_ + ": a part could not be read while the file was in use");
}

}  // namespace fedsel

#endif
