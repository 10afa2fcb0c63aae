// SPDX-License-Identifier: Apache-2.0

package effect

import "testing"

// Defects 1 to 3 of upstream: the hash is that of the write, a target that cannot be read has
// not drifted, and the caller's hash leaves out what the plan left out.
func TestWhatWasWrittenIsComparedWithWhatIsThere(t *testing.T) {
	wrote := Body{UID: "u", Hash: "pl1:a", Generation: 4}
	tests := map[string]struct {
		written Body
		live    Live
		want    Integrity
	}{
		"as it was written":                                {wrote, Live{Read: true, Body: wrote}, SpecUnchanged},
		"changed":                                          {wrote, Live{Read: true, Body: Body{"u", "pl1:b", 5}}, SpecDrifted},
		"changed, of a kind without generations":           {Body{UID: "u", Hash: "pl1:a"}, Live{Read: true, Body: Body{UID: "u", Hash: "pl1:b"}}, SpecDrifted},
		"changed and changed back":                         {wrote, Live{Read: true, Body: Body{"u", "pl1:a", 6}}, SpecUnchanged},
		"other defaults of a new API server":               {wrote, Live{Read: true, Body: Body{"u", "pl1:b", 4}}, SpecUnchanged},
		"a hash of a new version":                          {wrote, Live{Read: true, Body: Body{"u", "pl2:a", 4}}, SpecUnchanged},
		"removed":                                          {wrote, Live{Read: true, Gone: true}, SpecDrifted},
		"replaced by an equal one":                         {wrote, Live{Read: true, Body: Body{"v", "pl1:a", 1}}, SpecDrifted},
		"could not be read":                                {wrote, Live{}, IntegrityUnknown},
		"could not be read, and looks as if it were gone":  {wrote, Live{Gone: true}, IntegrityUnknown},
		"could not be hashed":                              {wrote, Live{Read: true, Body: Body{"u", "", 5}}, IntegrityUnknown},
		"could not be hashed, under an unchanged one":      {wrote, Live{Read: true, Body: Body{"u", "", 4}}, IntegrityUnknown},
		"a write whose answer had no hash proves no drift": {Body{UID: "u"}, Live{Read: true, Body: Body{"u", "pl1:b", 5}}, IntegrityUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Compare(tc.written, tc.live); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
