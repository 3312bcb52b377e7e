// Files in memory, for tests of what stands on Fs. Paths are taken lexically; there are no links, modes or folders.
#include <filesystem>
#include <map>

#include "base/mutex.h"
#include "sandbox/fs.h"

namespace sandbox {
namespace {

class MemoryFs : public Fs {
 public:
  explicit MemoryFs(bool confines) : confines_(confines) {}
  bool confines() const override { return confines_; }

  base::Result<FileContent> read(const std::string& path) override {
    const std::string place = lexical(path);
    const base::Lock lock(mutex_);
    const auto found = files_.find(place);
    if (found == files_.end())
      return base::fail(base::ErrorCode::not_found, "cannot read " + place + ": No such file or directory");
    return FileContent{place, found->second, sha256_hex(found->second)};
  }

  bool exists(const std::string& path) override {
    const base::Lock lock(mutex_);
    return files_.count(lexical(path)) > 0;
  }

  base::Result<WriteResult> write(const WriteRequest& request, const Policy& policy) override {
    const std::string place = lexical(request.path);
    const bool free = !confines_ || policy.mode == Mode::danger_full_access;
    if (!free && (policy.mode == Mode::read_only || !path_within(place, policy.workspace_root)))
      return base::fail(base::ErrorCode::fs_sandbox_denied,
                        "changing " + place + " is not allowed under " + std::string(mode_name(policy.mode)) + " mode");
    const base::Lock lock(mutex_);
    const auto found = files_.find(place);
    const std::string old_hash = found == files_.end() ? "" : sha256_hex(found->second);
    if (old_hash != request.expected_hash.value_or(""))
      return base::fail(base::ErrorCode::fs_stale_version, place + " was changed since it was read; read it again");
    files_[place] = request.bytes;
    return WriteResult{place, old_hash, sha256_hex(request.bytes)};
  }

 private:
  static std::string lexical(const std::string& path) {
    return std::filesystem::path(path).lexically_normal().string();
  }

  const bool confines_;
  base::Mutex mutex_;
  std::map<std::string, std::string> files_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Fs> make_memory_fs(bool confines) { return std::make_unique<MemoryFs>(confines); }

}  // namespace sandbox
