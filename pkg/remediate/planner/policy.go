// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// Digest of a policy's spec: "sha256:" and the SHA-256 of its JSON. A plan names
// it, so that it can be told whether the policy has changed since.
func Digest(spec *v1alpha1.RemediationPolicySpec) string {
	raw, err := json.Marshal(spec)
	if err != nil {
		panic("a policy's spec cannot be encoded: " + err.Error()) // strings, numbers and durations always can
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Schedule is when a policy may act. The errors name the field; a schedule with
// errors is never open. A nil zones is time.LoadLocation.
func Schedule(s *v1alpha1.RemediationSchedule, zones window.ZoneLoader) (window.Schedule, field.ErrorList) {
	spec := window.Spec{AllowedStart: s.AllowedStart, AllowedEnd: s.AllowedEnd}
	for _, day := range s.AllowedDays {
		spec.AllowedDays = append(spec.AllowedDays, string(day))
	}
	if w := s.MaintenanceWindow; w != nil {
		spec.MaintenanceWindow = &window.MaintenanceWindow{Start: w.Start, End: w.End, TimeZone: cmp.Or(w.TimeZone, "UTC")}
	}
	return window.Parse(spec, field.NewPath("spec", "schedule"), zones)
}
