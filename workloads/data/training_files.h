// Training from the user's own files: JPEG folders and tar shards with labels, and token files.
#pragma once

#include "workloads/data/training_stream.h"

namespace assay::data {

// A folder of JPEGs with a subfolder per class, or tar shards with .cls members (ImageSet). Subfolders train and val
// (or validation), with the same classes, are the splits; without them every tenth image of a fixed shuffle is held
// out. Training uses random-resized crops, validation the central crop of 7/8 of the shorter side. Throws a one-line
// UsageError if files are missing, or images have no label or one outside `classes`.
std::shared_ptr<const TrainingSet> open_training_images(const std::string& path, int size, std::int64_t classes);

// A file of raw tokens (TokenSet) in windows of `seq`; the last twentieth is held out. `masked`: 15 % of the tokens are
// targets; [MASK] is id 103 of BERT's vocabulary and the last id of any other.
// Throws a one-line UsageError if the file is missing, empty or too short, or has an id outside the vocabulary.
std::shared_ptr<const TrainingSet> open_training_tokens(const std::string& path, std::int64_t seq,
                                                        std::int64_t vocabulary, bool masked = false);

}  // namespace assay::data
