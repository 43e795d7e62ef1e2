// A client's end of the channel: reaching a supervisor, and noticing that the other end's host is gone.
#pragma once

#include "harness/core/json_fwd.h"

#include <string>

namespace assay {

// Connects to HOST:PORT, or to the first of several, separated by commas, that answers; tries again for `patience`
// seconds while there is nobody. Throws Error naming the address.
int connect_to(const std::string& addresses, double patience_seconds = 0);

// A peer whose host or link is gone says nothing more: the connection then ends after connection_limit() seconds.
void watch_connection(int fd);

// ASSAY_HEARTBEAT_LIMIT, 30 by default: seconds without a sign of life after which the other end is taken for dead.
double connection_limit();

// What every hello says: type, role, token, rank, size, host, pid, version and architecture.
Json hello_message(const std::string& role, const std::string& token, int rank, int size);

}  // namespace assay
