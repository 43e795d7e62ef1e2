// Tells what leaves the machine with an archive that is made to be sent: evidence for a vendor, a pack of a check.
#pragma once

#include <string>
#include <string_view>

namespace assay::fitness {

// "holds the names of 2 hosts (n1, n2), 8 UUIDs and 12 lines of logs; 1 value is masked", of a tar archive that was
// just made. Throws Error if it is none.
std::string sent_text(std::string_view archive);

}  // namespace assay::fitness
