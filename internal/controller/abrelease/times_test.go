// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheTimesOfProduction(t *testing.T) {
	want := Times{Acknowledged: 10 * time.Second, Groups: 2 * time.Second, IdleGroups: 15 * time.Second, Ledger: 5 * time.Second, Counts: 30 * time.Second, Settles: 30 * time.Second, Sweep: time.Minute, KeptFor: 45 * time.Minute}
	if diff := cmp.Diff(want, Times{}.withDefaults()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want.Ledger = time.Millisecond
	if diff := cmp.Diff(want, Times{Ledger: time.Millisecond}.withDefaults()); diff != "" {
		t.Errorf("with one that is set (-want +got):\n%s", diff)
	}
}
