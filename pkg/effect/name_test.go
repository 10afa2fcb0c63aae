// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"strings"
	"testing"
)

func TestNamesOfAssessments(t *testing.T) {
	if got := NameOf("production-7", 3); got != "production-7-3" {
		t.Errorf("the name is %s", got)
	}
	if got := NameOfRun("web", 12); got != "web-12" {
		t.Errorf("the name of a run is %s", got)
	}
	long := strings.Repeat("a", 253)
	first, second := NameOf(long, 0), NameOf(long, 1)
	if len(first) > 253 || first == second {
		t.Errorf("the names of two steps of a long plan are %s and %s", first, second)
	}
}
