// SPDX-License-Identifier: Apache-2.0

package plural

import "testing"

func TestACountFitsItsNounAndItsVerb(t *testing.T) {
	for n, want := range map[int]string{0: "0 objects are", 1: "1 object is", 2: "2 objects are"} {
		if got := Of(n, "object") + " " + Verb(n, "is", "are"); got != want {
			t.Errorf("%d is told as %q, want %q", n, got, want)
		}
	}
}
