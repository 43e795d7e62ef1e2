// Marks functions that both a host and a device compiler build. A device build defines the macro as its own attributes;
// everywhere else it is nothing.
#pragma once

#ifndef ASSAY_HOST_DEVICE
#define ASSAY_HOST_DEVICE
#endif
