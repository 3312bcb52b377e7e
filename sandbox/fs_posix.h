// The file operations the local and the fenced file system share: where a path really leads, reading a regular file in
// bounded memory, and replacing one on the descriptor of its directory. Nothing here decides what may be written.
// Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "sandbox/fs.h"

namespace sandbox {

// canonical_target() that also follows a symlink whose target does not exist yet.
base::Result<std::string> write_target(const std::string& absolute_path);

// invalid_argument with the kind named unless it is a regular file; limit when it is too large. Never opens a FIFO or a
// device. The agent's own entries below /proc are refused: they hold its memory.
base::Result<FileContent> read_regular(const std::string& path);

// The directory below root, made with its missing parents, as a descriptor (O_PATH). No symlink is followed on the way,
// neither in root nor below it: both are canonical, so a link there means that somebody swapped a folder. Then `busy`.
base::Result<base::Fd> open_folder(const std::string& root, const std::string& relative);

// Writes request.bytes to `name` in `folder` through a temporary file and a rename, so that a reader sees the old or
// the new content. Keeps mode, owner, ACL and user attributes of an existing file. Where the folder takes no new file,
// or the owner cannot be kept, the file is written in place, unless it has other names and `many_names` is false: then
// one of them may lie where this call may not write.
base::Result<WriteResult> replace_in(const base::Fd& folder, const std::string& name, const std::string& canonical,
                                     const WriteRequest& request, bool many_names);

// "a folder", "a FIFO", "a socket", "a device", "a regular file", "a symbolic link".
std::string_view kind_of_mode(unsigned mode);

}  // namespace sandbox
