#include <sys/stat.h>

#include <filesystem>

#include "sandbox/fs_posix.h"

namespace sandbox {
namespace {

class LocalFs : public Fs {
 public:
  bool confines() const override { return false; }
  base::Result<FileContent> read(const std::string& path) override { return read_regular(path); }
  bool exists(const std::string& path) override {
    struct stat status {};
    return stat(path.c_str(), &status) == 0;
  }
  base::Result<WriteResult> write(const WriteRequest& request, const Policy&) override {
    const auto target = write_target(request.path);
    if (!target) return tl::unexpected(target.error());
    const std::filesystem::path path(*target);
    const auto folder = open_folder("/", path.parent_path().relative_path().string());
    if (!folder) return tl::unexpected(folder.error());
    return replace_in(*folder, path.filename().string(), *target, request, true);
  }
};

}  // namespace

std::unique_ptr<Fs> make_local_fs() { return std::make_unique<LocalFs>(); }

}  // namespace sandbox
