// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"crypto/sha256"
	"encoding/hex"
)

// LabelPolicy is the label of a plan that says by which policy it was made; see
// [PolicyLabel] for its value.
const LabelPolicy = "plumbline.dev/policy"

// maxLabelValue is the API server's limit of a label's value, in bytes.
const maxLabelValue = 63

// PolicyLabel is the value of [LabelPolicy] for a policy: its name, or 32
// hexadecimal digits of a digest of it where that is longer than a label may be.
func PolicyLabel(policy string) string {
	if len(policy) <= maxLabelValue {
		return policy
	}
	sum := sha256.Sum256([]byte(policy))
	return hex.EncodeToString(sum[:16])
}
