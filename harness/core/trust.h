// What root may rely on: places that no other user can change.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace assay {

// Whether this process is root's.
bool as_root();

// Why another user could change what is at `path`, as "/tmp/x belongs to user 1000" or "others may write to /srv/x".
// Every folder and link on the way is looked at; a folder with the sticky bit may be open to all. Trusted are root, the
// owner of this program's file and the owner of /, who could change the program itself. Empty if nobody could, if
// nothing is there, and for a process that is not root's.
std::string why_untrusted(const std::filesystem::path& path);

// For root's process: throws UsageError that begins with `what` if another user could change the path.
void require_trusted(std::string_view what, const std::filesystem::path& path);

// Makes the folder if it does not exist, and closes it to others (0700); leaves it alone for a process that is not
// root's. Throws Error if it cannot be made, or if another user could change it.
const std::filesystem::path& make_private(const std::filesystem::path& folder);

}  // namespace assay
