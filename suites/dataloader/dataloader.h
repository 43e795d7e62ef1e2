// The dataloader suite: how fast training samples come from disk, each stage alone and the whole pipeline.
#pragma once

#include "harness/plan/family.h"

namespace assay {

// kind=image: JPEG files or tar shards through random-resized-crop, flip and normalisation to 224 x 224 f32 batches.
// On a GPU the batches go on to its memory through pinned buffers, and count once they are there.
// kind=token: windows of a token file, widened to int32 batches. `path` is the user's data, or "generated".
Family dataloader_family();

}  // namespace assay
