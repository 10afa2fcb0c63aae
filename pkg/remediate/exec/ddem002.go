// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// hashSpec returns the hash of DD-EM-002 of a target, if the policy asks for it. A spec that the
// algorithm refuses has none. The drifted body is kept nowhere, so the hash is taken when it is read.
func (r *run) hashSpec(step int32, raw []byte) string {
	if r.policy == nil || r.policy.Spec.Effectiveness.Hashes != v1alpha1.HashesDDEM002 {
		return ""
	}
	hash, err := canon.HashBodySpec(raw, gvkOf(r.target(step)))
	if err != nil {
		return ""
	}
	return string(hash)
}
