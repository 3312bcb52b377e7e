// The file seam of the in-process tools. Reads are allowed in every mode; writes carry the policy of their call.
// FS_SANDBOX_DENIED is our refusal, FS_PERMISSION_DENIED the host's. Implementations: local, fenced; in tests in
// memory. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "sandbox/policy.h"

namespace sandbox {

struct FileContent {
  std::string canonical_path;
  std::string bytes;
  std::string hash;  // SHA-256, hex: the version for stale checks
};

struct WriteRequest {
  std::string path;  // absolute, as the model gave it made absolute
  std::string bytes;
  // What the writer believes is there: absent = the file must not exist; else the hash that must still hold
  // (FS_STALE_VERSION otherwise). Checked immediately before the change.
  std::optional<std::string> expected_hash;
};

struct WriteResult {
  std::string canonical_path;
  std::string old_hash;  // "" when created
  std::string new_hash;
};

inline constexpr std::size_t fs_read_limit = 32u << 20;  // larger files are refused with what to use instead

class Fs {
 public:
  virtual ~Fs() = default;
  virtual bool confines() const = 0;
  // Regular files only (a folder, FIFO or device is invalid_argument with its kind named). Symlinks are followed.
  virtual base::Result<FileContent> read(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
  // Atomic (temporary file beside the target, then rename); missing parent folders are made; keeps mode, owner and
  // symlinks of an existing target. The target is made canonical, and fenced, immediately before the change.
  virtual base::Result<WriteResult> write(const WriteRequest& request, const Policy& policy) = 0;
};

std::unique_ptr<Fs> make_local_fs();
// The fence: writable_roots(policy) of this host, race-free with openat2 where the kernel has it. The agent's state
// folder is refused even below a root.
std::unique_ptr<Fs> make_fenced_fs(Host host);
std::unique_ptr<Fs> make_memory_fs(bool confines);  // tests

std::string sha256_hex(std::string_view bytes);

}  // namespace sandbox
