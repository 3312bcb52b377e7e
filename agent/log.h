// The file of one session: append-only lines in <root>/<slug>/<id>/session.jsonl, one writer by a lock file beside it.
// Knows bytes and lines, no events. Folders are 0700 and files 0600, owned by this user; nothing at or below the root
// is reached through a symbolic link, and links above it only when root or this user made them.
//
// append() and read() under the owner's lock; sync() from any thread, outside it. The first failed write or sync is
// kept: everything after fails with the same error, because what the disk holds is then unknown.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "base/mutex.h"

namespace agent {

// The two calls that can fail for lack of space; tests choose them. Default: write(2), fdatasync(2).
struct LogSystem {
  std::function<ssize_t(int fd, const char* bytes, std::size_t size)> write;
  std::function<int(int fd)> sync;
};

inline constexpr const char* log_file_name = "session.jsonl";
inline constexpr const char* lock_file_name = "session.lock";
inline constexpr std::size_t log_size_limit = std::size_t{1} << 30;  // a larger file is no session of ours

class LogFile {
 public:
  // Makes the folders and the file; already_exists when there is one. Takes the lock.
  static base::Result<std::unique_ptr<LogFile>> create(const std::string& root, const std::string& slug,
                                                       const std::string& id, LogSystem system = {});
  // Takes the lock (busy when another process has it) and cuts a torn tail: what follows the last newline.
  static base::Result<std::unique_ptr<LogFile>> open(const std::string& folder, LogSystem system = {});

  const std::string& folder() const { return folder_; }
  const std::string& path() const { return path_; }
  std::size_t cut() const { return cut_; }  // bytes of torn tail that open() removed
  base::Result<std::string> read() const;   // the whole file

  // `lines`: one or more whole lines without the last newline. All of it or an error.
  base::Result<void> append(std::string_view lines);
  base::Result<void> sync();

 private:
  LogFile() = default;
  base::Result<void> open_in(base::Fd folder, const std::string& folder_path, bool make, LogSystem system);
  base::Result<void> cut_torn_tail();
  base::Result<void> broken();
  tl::unexpected<base::Error> breaks(base::Error error);

  std::string folder_, path_;
  base::Fd folder_fd_, lock_, file_;
  LogSystem system_;
  std::size_t cut_ = 0;
  std::atomic<bool> folder_synced_{true};
  base::Mutex mutex_;  // leaf
  std::optional<base::Error> error_ GUARDED_BY(mutex_);
};

// Readable and unique per folder: the end of the path in safe characters, and eight hex digits of its hash.
std::string cwd_slug(const std::string& cwd);
// What to say where sessions cannot be kept below `root`, and what to do.
std::string cannot_keep_sessions(const std::string& root, const std::string& why);
bool valid_session_id(std::string_view id);  // what may name a folder: letters, digits, '-', '_'; at most 64

// Reads a log file without taking it; refuses links, other users' files and anything but a regular file.
base::Result<std::string> read_log_bytes(const std::string& file);

}  // namespace agent
