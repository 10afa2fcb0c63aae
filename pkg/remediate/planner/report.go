// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// driftReportID names the drift of some objects. The name is the same for each policy, each
// attempt and each order of the objects. A drift that is seen anew, or goes elsewhere, is another one.
func driftReportID(environment string, group []*Drift) string {
	type item struct {
		Namespace, Baseline, UID, Drifted string
		FirstSeen                         int64
	}
	report := struct {
		Environment string
		Items       []item
	}{Environment: environment}
	for _, d := range group {
		report.Items = append(report.Items, item{d.Namespace, d.Baseline, d.UID, d.DriftedHash, d.FirstSeen.Unix()})
	}
	slices.SortFunc(report.Items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Baseline, b.Baseline))
	})
	raw, err := json.Marshal(report)
	if err != nil {
		panic("a drift report cannot be encoded: " + err.Error()) // strings and numbers always can
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}
