#include "harness/run/case_message.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/json/members.h"

namespace assay {

message::Case to_message(const CaseOrder& order, int index) { return {index, order.family->name, json_of(order)}; }

CaseOrder order_from(const message::Case& message, std::span<const Family> families) {
  const Family* family = find_family(families, message.family);
  if (!family) throw Error(fmt::format("family {} is not in this binary", in_quotes(message.family)));
  auto order = read_value<CaseOrder>(message.order);
  order.family = family;
  return order;
}

}  // namespace assay
