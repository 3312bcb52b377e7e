#include "sandbox/shell_spill.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/log.h"

namespace sandbox {
namespace {

constexpr std::uint64_t least_useful = 128 * 1024;  // less room than this is not worth a file

std::uint64_t bytes_below(const std::string& folder) {
  std::error_code error;
  std::uint64_t sum = 0;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const std::uint64_t size = it->is_regular_file(ignored) ? it->file_size(ignored) : 0;
    if (!ignored) sum += size;
  }
  return sum;
}

}  // namespace

SpillFile::SpillFile(std::string folder, std::uint64_t call_limit, std::uint64_t session_limit)
    : folder_(std::move(folder)), limit_(call_limit), session_limit_(session_limit) {}

void SpillFile::open() {
  opened_ = true;
  broken_ = true;
  if (folder_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(folder_).parent_path(), error);
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) {
    base::log_warning("cannot make the folder for cut output: " + folder_);
    return;
  }
  const std::uint64_t used = bytes_below(folder_);
  const std::uint64_t room = used < session_limit_ ? session_limit_ - used : 0;
  limit_ = std::min(limit_, room);
  if (limit_ < std::min(least_useful, session_limit_)) return;
  head_ = limit_ / 2;
  tail_ = limit_ - head_;
  for (int number = 1; number < 100'000; ++number) {
    std::string path = folder_ + "/output-" + std::to_string(number) + ".txt";
    file_ = base::Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file_) {
      path_ = std::move(path);
      broken_ = false;
      return;
    }
    if (errno != EEXIST) break;
  }
  base::log_warning("cannot make a file for cut output in " + folder_);
}

bool SpillFile::put(std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return true;
}

void SpillFile::append(std::string_view bytes) {
  if (!opened_) open();
  while (!bytes.empty() && !broken_) {
    // Up to head_ the file grows; behind it lies a ring of tail_ bytes.
    const std::uint64_t offset = total_ < head_ ? total_ : head_ + (total_ - head_) % tail_;
    const std::uint64_t border = total_ < head_ ? head_ : limit_;
    const std::string_view piece = bytes.substr(0, border - offset);
    if (!put(piece, offset)) {
      broken_ = true;
      break;
    }
    total_ += piece.size();
    bytes.remove_prefix(piece.size());
  }
  lost_ += bytes.size();
}

void SpillFile::finish() {
  if (path_.empty() || total_ <= limit_) return;
  lost_ += total_ - limit_;
  if (!linearise()) {
    // Out of order it would mislead; without it the loss is everything beyond what memory kept.
    unlink(path_.c_str());
    path_.clear();
    lost_ += limit_;
  }
}

bool SpillFile::linearise() {
  const std::string ordered = path_ + ".part";
  base::Fd source = std::move(file_);
  file_ = base::Fd(::open(ordered.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_) return false;
  std::uint64_t to = 0;
  const auto copy = [&](std::uint64_t from, std::uint64_t size) {
    std::vector<char> buffer(256 * 1024);
    while (size > 0) {
      const ssize_t n =
          pread(source.get(), buffer.data(), std::min<std::uint64_t>(buffer.size(), size), static_cast<off_t>(from));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0 || !put({buffer.data(), static_cast<std::size_t>(n)}, to)) return false;
      from += static_cast<std::uint64_t>(n);
      to += static_cast<std::uint64_t>(n);
      size -= static_cast<std::uint64_t>(n);
    }
    return true;
  };
  const std::string gap = "\n[… " + std::to_string(total_ - limit_) + " bytes left out …]\n";
  const std::uint64_t oldest = (total_ - head_) % tail_;  // where the ring's oldest byte is
  bool good = copy(0, head_) && put(gap, to);
  to += gap.size();
  good = good && copy(head_ + oldest, tail_ - oldest) && copy(head_, oldest);
  if (good && rename(ordered.c_str(), path_.c_str()) == 0) return true;
  unlink(ordered.c_str());
  return false;
}

}  // namespace sandbox
